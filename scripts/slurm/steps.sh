# shellcheck shell=bash
# What the batch scripts share, after site.conf: how a command becomes the ranks of the job, and the preflight of its
# nodes.

if [[ -n ${SLURM_HET_SIZE-} ]]; then
  echo "this is a heterogeneous job: ranks on unlike components make no measurement; submit each component as a job of its own" >&2
  exit 2
fi
: "${SLURM_CPUS_PER_TASK:=1}"  # unset without --cpus-per-task

# The words that start a command as every task of the job, bound to its cores, in the container that site.conf names.
if [[ $LAUNCHER == mpirun ]]; then
  launch=(mpirun -n "$SLURM_NTASKS" --map-by "slot:PE=$SLURM_CPUS_PER_TASK" --bind-to core)
  if [[ -n $CONTAINER_IMAGE ]]; then launch+=(apptainer exec "${CONTAINER_FLAGS[@]}" "$CONTAINER_IMAGE"); fi
else
  export SLURM_KILL_BAD_EXIT=1  # as the flag, which ranks can't see
  export SLURM_PMIX_FENCE="${SLURM_PMIX_FENCE:-ring}"  # with Slurm's tree a rank can leave MPI_Init before others can receive
  launch=(srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" --cpu-bind=cores)
  if [[ -n $CONTAINER_IMAGE ]]; then launch+=(--container-image="$CONTAINER_IMAGE" "${CONTAINER_FLAGS[@]}"); fi
fi

# The flags with which scalemark itself, outside (HOST_SCALEMARK), starts ranks in the container.
in_container=()
if [[ -n $CONTAINER_IMAGE ]]; then
  if [[ $LAUNCHER == mpirun ]]; then runtime="apptainer exec ${CONTAINER_FLAGS[*]} {image}"; else runtime="--container-image={image} ${CONTAINER_FLAGS[*]}"; fi
  in_container=(--container "$CONTAINER_IMAGE" --container_runtime="$runtime" --container_program "$SCALEMARK")
fi

# preflight RECORD: checks the job's nodes, as PREFLIGHT says; what is measured later names the record.
preflight() {
  local record=$1 code=0
  [[ $PREFLIGHT != no ]] || return 0
  rm -f -- "$record"  # of the same job before it was requeued
  "${launch[@]}" "$SCALEMARK" preflight "${PREFLIGHT_FLAGS[@]}" --output "$record" || code=$?
  if ((code != 0)) && [[ $PREFLIGHT != warn ]]; then
    echo "the preflight of this job's nodes ended with exit code $code, so nothing is measured (site.conf: PREFLIGHT=warn goes on)" >&2
    exit "$code"
  fi
  if [[ -e $record ]]; then export SCALEMARK_PREFLIGHT=$record; fi
}

# go_on COMMAND...: runs a command that goes on where an earlier job ended, and leaves with its exit code. `measured`, of
# the script, counts what the command has done so far. Before the time limit this shell gets USR1: the command ends its
# launch at a step boundary, and the job goes back into the queue, unless it measured nothing: then the next time would
# end like this one.
go_on() {
  local before stopped=0 code=0 command
  before=$(measured)
  trap 'stopped=1; kill -USR1 "$command" || true' USR1
  "$@" &
  command=$!
  wait "$command" || code=$?
  if ((stopped)); then code=0; wait "$command" || code=$?; fi  # the trap ended the first wait
  if ((stopped && code != 0)); then
    if (($(measured) > before)); then
      scontrol requeue "$SLURM_JOB_ID"
    else
      echo "not one launch ended within the time limit: give the job more time" >&2
    fi
  fi
  exit "$code"
}
