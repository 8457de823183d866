# Embeds the style and the script of HTML reports. The script is wrapped so that a page is
# well-formed XML too; the hashes are of the very bytes that stand in it.
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/src/report/html)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${folder}/page.css ${folder}/page.js)
file(READ ${folder}/page.css style)
file(READ ${folder}/page.js script)
set(script "//<![CDATA[\n${script}//]]>")
string(SHA256 style_sha256 "${style}")
string(SHA256 script_sha256 "${script}")
set(assets ${CMAKE_CURRENT_BINARY_DIR}/html_assets.cpp)
configure_file(${folder}/assets.cpp.in ${assets} @ONLY)
target_sources(stepcast_report PRIVATE ${assets})
