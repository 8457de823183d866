// SPDX-License-Identifier: Apache-2.0
// Launch scripts in the ways that people write them. ${BASE} are the flags that all need.
#pragma once

#include <string>
#include <vector>

namespace stepcast::testing {

struct LaunchScript {
  const char* name;
  const char* text;
  // The setting that hangs on a condition that only a run decides; "": bash and the import agree.
  const char* hangs = "";
};

inline const std::vector<LaunchScript>& launch_scripts() {
  static const std::vector<LaunchScript> all = {
      {"plain", "torchrun --nproc_per_node 8 pretrain_gpt.py $BASE --bf16\n"},
      {"branch not taken", R"(PR=${PR:-bf16}
ARGS=($BASE --bf16)
if [[ $PR == fp8 ]]; then
  ARGS+=(--fp8-format hybrid)
fi
torchrun --nproc_per_node 8 pretrain_gpt.py "${ARGS[@]}"
)"},
      {"branch taken", R"(PR=fp8
ARGS="$BASE --bf16"
if [ "$PR" = "fp8" ] ; then
  ARGS="$ARGS --fp8-format hybrid"
else
  ARGS="$ARGS --fp16"
fi
torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
)"},
      {"elif", R"(SIZE=70b
if [ $SIZE = 8b ]; then TP=1
elif [ $SIZE = 70b ]; then TP=4; PP=2
else TP=8
fi
torchrun --nproc_per_node=8 pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP \
  --pipeline-model-parallel-size ${PP:-1}
)"},
      {"case", R"(MODE=fast
case "$MODE" in
  slow) RC="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1" ;;
  fast|quick) RC="--recompute-activations" ;;
  *) RC="" ;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py $BASE --bf16 $RC
)"},
      {"case with patterns", R"(MODEL=llama3-70b-instruct
case $MODEL in
  *8b*)
    TP=1
    ;;
  llama3-7[01]b*)
    TP=4
    ;;
  *)
    TP=8
esac
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP
)"},
      {"case default", R"(case ${KIND:-none} in
  a) X="--fp16";;
  *) X="--bf16";;
esac
python pretrain_gpt.py $BASE $X
)"},
      {"numbers", R"(NNODES=4
GPUS_PER_NODE=2
WORLD=$((NNODES*GPUS_PER_NODE))
if [ $WORLD -ge 8 ]; then TP=2; fi
if (( WORLD > 16 )); then TP=8; fi
[[ $NNODES -eq 4 && $TP -lt 4 ]] && PP=2
torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py $BASE --bf16 \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
)"},
      {"short conditions", R"(USE_SP=1
USE_FLASH=0
TP=4
[ "$USE_SP" = 1 ] && EXTRA="--sequence-parallel" || EXTRA=""
[ "$USE_FLASH" = 1 ] && EXTRA="$EXTRA --use-flash-attn"
[[ -z "$EXTRA" ]] || EXTRA+=" --use-distributed-optimizer"
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP $EXTRA
)"},
      {"functions", R"(model_args() {
  echo "not these: --num-layers 2"
}
set_parallel() {
  TP=$1
  PP=${2:-1}
}
function launch {
  torchrun --nproc_per_node 8 pretrain_gpt.py $BASE --bf16 "$@"
}
set_parallel 2 4
launch --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
)"},
      {"function chosen by case", R"(run_small() { python pretrain_gpt.py $BASE --bf16; }
run_large() {
  python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size 8 --sequence-parallel
}
case small in
  small) run_small ;;
  large) run_large ;;
esac
)"},
      {"main", R"(main() {
  local tp=2
  if [[ "$tp" != "1" ]]; then
    local sp="--sequence-parallel"
  fi
  python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size "$tp" $sp
}
main "$@"
)"},
      {"arguments of its own", R"(TP=2
while [[ $# -gt 0 ]]; do
  case $1 in
    --tp) TP="$2"; shift 2 ;;
    *) echo "unknown $1"; exit 1 ;;
  esac
done
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP
)"},
      {"usage", R"(TP=${1:-4}
MBS=${2:-2}
if [ "$TP" -gt 8 ]; then
  echo "too many"
  exit 1
fi
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP --micro-batch-size $MBS
)"},
      {"arrays in parts", R"(MODEL_ARGS=(
  $BASE # the model
  --bf16
)
PARALLEL_ARGS=(--tensor-model-parallel-size 2)
PARALLEL_ARGS+=(--sequence-parallel)
EMPTY=()
python pretrain_gpt.py "${MODEL_ARGS[@]}" ${PARALLEL_ARGS[@]} "${EMPTY[@]}"
)"},
      {"set or not", R"(FP8=
DIST=yes
python pretrain_gpt.py $BASE --bf16 ${FP8:+--fp8-format hybrid} ${DIST:+--use-distributed-optimizer}
)"},
      {"defaults of defaults", R"(A=${A:-${B:-2}}
: ${C:=4}
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $A \
  --pipeline-model-parallel-size $C
)"},
      {"loop", R"(ARGS=""
for FLAG in --bf16 --sequence-parallel --use-distributed-optimizer; do
  ARGS="$ARGS $FLAG"
done
python pretrain_gpt.py $BASE --tensor-model-parallel-size 2 $ARGS
)"},
      {"loop of runs", R"(for TP in 1 2 4; do
  python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP
done
)"},
      {"letters", R"(PR=BF16
MODEL=configs/llama-8b.json
NAME=${MODEL##*/}
NAME=${NAME%.json}
[[ $NAME == llama-8b ]] && TP=2
python pretrain_gpt.py $BASE --${PR,,} --tensor-model-parallel-size ${TP}
)"},
      {"one word", R"(CMD="pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size 2"
if [ -n "$CMD" ]; then
  eval "python $CMD"
fi
)"},
      {"nested", R"(ARCH=moe
EP=8
if [[ $ARCH == moe ]]; then
  MOE="--num-experts 8 --moe-router-topk 2"
  if [[ $EP -gt 1 ]]; then
    MOE="$MOE --expert-model-parallel-size $EP"
    case $EP in
      8) MOE="$MOE --moe-token-dispatcher-type alltoall" ;;
    esac
  fi
fi
torchrun --nproc_per_node 8 pretrain_gpt.py $BASE --bf16 $MOE
)"},
      {"not", R"(DEBUG=false
if ! [ "$DEBUG" = true ]; then ARGS="--use-distributed-optimizer"; fi
if [[ ! $DEBUG == true && ( -n $ARGS || $DEBUG == maybe ) ]]; then ARGS="$ARGS --bf16"; fi
python pretrain_gpt.py $BASE $ARGS
)"},
      {"true and false", R"(FP8=false
SP=true
if $SP; then A="--sequence-parallel"; fi
if $FP8; then A="$A --fp8-format hybrid"; fi
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size 2 $A
)"},
      {"here-document", R"(cat <<END > /dev/null
if [ 1 = 1 ]; then
python pretrain_gpt.py --num-layers 2
END
python pretrain_gpt.py $BASE --bf16 2>&1 | tee /dev/null
)"},
      {"pipes and groups", R"(true && { TP=2; PP=4; } || { TP=8; PP=8; }
( cd / ) || exit 1
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP \
  --pipeline-model-parallel-size $PP | cat
)"},
      {"length of an array", R"(NODES=(a b c d)
N=${#NODES[@]}
if [ $N -eq 4 ]; then PP=4; fi
torchrun --nnodes $N --nproc_per_node 1 pretrain_gpt.py $BASE --bf16 \
  --pipeline-model-parallel-size $PP
)"},
      {"a file decides",
       R"(ARGS="$BASE --bf16"
if [ -f /no/such/file ]; then
  ARGS="$ARGS --use-distributed-optimizer"
fi
python pretrain_gpt.py $ARGS
)",
       "--use-distributed-optimizer"},
      {"the machine decides",
       R"sh(TP=1
if [ "$(hostname)" = "no-such-machine" ]; then
  TP=2
fi
python pretrain_gpt.py $BASE --bf16 --tensor-model-parallel-size $TP
)sh",
       "--tensor-model-parallel-size 2"},
      {"the environment decides",
       R"(ARGS=($BASE --bf16)
if [[ -n $SLURM_JOB_ID ]]; then
  ARGS+=(--recompute-activations)
fi
case $FLAVOUR in
  small) ARGS+=(--use-distributed-optimizer) ;;
esac
python pretrain_gpt.py "${ARGS[@]}"
)",
       "--recompute-activations"}};
  return all;
}

}  // namespace stepcast::testing
