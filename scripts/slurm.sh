#!/bin/bash
#SBATCH --job-name=labkit
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=00:20:00
#
# Run a lab on the nodes of a Slurm job, from the root of this repository, on a file system that all nodes share:
#
#     sbatch scripts/slurm.sh overlap --variant broken --record runs/first
#     sbatch --nodes 4 --gpus-per-node 8 scripts/slurm.sh overlap
#
# As many ranks a node as it has GPUs for the job; RANKS_PER_NODE says otherwise (2 where there is no GPU).
set -euo pipefail

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${nodes%%$'\n'*}
port=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a node do not meet
ranks=${RANKS_PER_NODE:-${SLURM_GPUS_ON_NODE:-2}}

# a restart must not read the addresses of the attempt before it
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

exec srun --ntasks-per-node=1 .venv/bin/torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" --nproc-per-node "$ranks" \
    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$first:$port" \
    -m labkit run "$@"
