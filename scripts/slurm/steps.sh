# shellcheck shell=bash
# What the batch scripts share, after site.conf: how a command becomes the ranks of the job, and the preflight of its
# nodes.

# The words that start a command as every task of the job, bound to its cores, in the container that site.conf names.
if [[ $LAUNCHER == mpirun ]]; then
  launch=(mpirun -n "$SLURM_NTASKS" --map-by "slot:PE=$SLURM_CPUS_PER_TASK" --bind-to core)
  if [[ -n $CONTAINER_IMAGE ]]; then launch+=(apptainer exec "${CONTAINER_FLAGS[@]}" "$CONTAINER_IMAGE"); fi
else
  export SLURM_KILL_BAD_EXIT=1  # as the flag, which ranks can't see
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
