# SPDX-License-Identifier: Apache-2.0
"""Answers are dicts with the keys of the program's JSON, and draw themselves in a notebook."""

import csv
import html
import io
import json
import re
from typing import Any, Callable, Dict, Generic, List, TypeVar

from . import _core

Made = TypeVar("Made", bound="_core._Answer")
Row = Dict[str, Any]

_SECTION = re.compile(r'<section id="([^"]*)".*?</section>', re.DOTALL)
_TITLE = re.compile(r"<h2[^>]*>(.*?)</h2>", re.DOTALL)
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_SVG_ENDS = re.compile(r"<svg |</svg>")


def _cell(text: str) -> Any:
    """A cell of CSV as the number, truth or text that it is; None where it is empty."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text or None


def _framed(page: str, height_em: int) -> str:
    """The page in a frame of its own: its style and the notebook's leave each other alone."""
    return (f'<iframe style="width: 100%; height: {height_em}em; border: 0" '
            f'sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(page)}"></iframe>')


class Picture:
    """A part of a page that draws itself in a notebook. `html` is a page of this part alone, `svg`
    the list of its drawings, each of which stands alone."""

    def __init__(self, title: str, page: str, svg: List[str]) -> None:
        self.title = title
        self.html = page
        self.svg = svg

    def __repr__(self) -> str:
        return f"<stepcast picture: {self.title}>"

    def _repr_html_(self) -> str:
        return _framed(self.html, 24)


def _drawings(markup: str) -> List[str]:
    """The drawings with a meaning of their own, as they stand in a page."""
    out: List[str] = []
    depth = begin = 0
    for end in _SVG_ENDS.finditer(markup):
        if end.group(0) == "<svg ":
            begin = end.start() if depth == 0 else begin
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                out.append(markup[begin:end.end()])
    return [one for one in out if 'role="img"' in one[:one.index(">")]]


def _picture(page: str, name: str) -> Picture:
    sections = {found.group(1): found.group(0) for found in _SECTION.finditer(page)}
    if name not in sections:
        raise KeyError(f"there is no picture '{name}': {', '.join(sections)}")
    section = sections[name]
    style = _STYLE.search(page)
    title = _TITLE.search(section)
    assert style and title, "every page has a style, and every section a title"
    alone = (page[:page.index("<body>")] + "<body><main>" + section + "</main>" +
             page[page.rindex("<script>"):])
    svg = [one.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
           .replace(">", ">" + style.group(0), 1) for one in _drawings(section)]
    return Picture(html.unescape(title.group(1)), alone, svg)


class Result(Dict[str, Any], Generic[Made]):
    """All figures, as a dict. `rows` are flat dicts with the columns of the program's CSV:
    `pandas.DataFrame(result.rows)`."""

    def __init__(self, made: Made) -> None:
        super().__init__(json.loads(made.json()))
        self._made = made

    def __reduce__(self) -> Any:  # in another process it is a plain dict
        return dict, (dict(self),)

    @property
    def rows(self) -> List[Row]:
        return [{key: _cell(value) for key, value in row.items()}
                for row in csv.DictReader(io.StringIO(self._made.csv()))]

    def text(self) -> str:
        """The figures as the program prints them."""
        return self._made.text()

    def markdown(self) -> str:
        return self._made.markdown()

    def html(self) -> str:
        """A page that stands alone, with every picture."""
        return self._made.html()

    def pictures(self) -> List[str]:
        """The names that `picture` takes."""
        return [found.group(1) for found in _SECTION.finditer(self.html())]

    def picture(self, name: str) -> Picture:
        """A part of the page. Raises KeyError where the page has no such part."""
        return _picture(self.html(), name)

    def _repr_html_(self) -> str:
        return _framed(self.html(), 40)


class Prediction(Result[_core.Prediction]):
    """The forecast of one step (docs/formats/prediction.md): `forecast["step_time_s"]`. Its
    pictures are "time", "pipeline", "memory" and the other parts of its page."""

    def __init__(self, made: _core.Prediction, again: Callable[[], _core.Prediction]) -> None:
        super().__init__(made)
        self._again = again  # with all that pictures need, which few ask for
        self._drawn: Any = None

    def _with_timeline(self) -> _core.Prediction:
        if self._drawn is None:
            self._drawn = self._again()
        drawn: _core.Prediction = self._drawn
        return drawn

    def html(self) -> str:
        return self._with_timeline().html()

    def trace(self) -> Dict[str, Any]:
        """The step as a Chrome trace, for Perfetto."""
        out: Dict[str, Any] = json.loads(self._with_timeline().trace())
        return out

    def memory_timeline(self) -> Dict[str, Any]:
        """Memory over the step, by part and class of ranks."""
        out: Dict[str, Any] = json.loads(self._with_timeline().memory_timeline())
        return out


class Plan(Result[_core.Plan]):
    """The best layouts of a search (docs/plan.md). It is false where no layout fits."""

    def __bool__(self) -> bool:
        return self._made.places() > 0

    @property
    def proven(self) -> bool:
        """Whether no layout that was not tried can be better."""
        return self._made.proven()

    @property
    def layouts(self) -> List[str]:
        """The layouts in words, the best first."""
        return [self._made.layout(place) for place in range(self._made.places())]

    def scenario(self, place: int = 0) -> Dict[str, Any]:
        """The scenario with the layout of a place, for `predict`. Raises IndexError."""
        if not 0 <= place < self._made.places():
            raise IndexError(f"the plan has {self._made.places()} places")
        out: Dict[str, Any] = json.loads(self._made.scenario(place).json())
        return out


class Comparison(Result[_core.Comparison]):
    """Forecasts side by side, and where their difference comes from (docs/compare.md)."""


class CheckOutcome(Result[_core.CheckOutcome]):
    """Forecasts beside recorded runs (docs/formats/suite.md). It is true where no limit is
    broken."""

    def __bool__(self) -> bool:
        return self._made.passed()

    def junit(self) -> str:
        return self._made.junit()
