#!/usr/bin/env python3
"""Spreads the jobs of a campaign over a Ray cluster (docs/campaign.md).

    campaign-ray.py CAMPAIGN.toml FOLDER [BRAID]

FOLDER is on a file system that all machines share; BRAID is the program's path
there. RAY_ADDRESS names the cluster; without it one is started on this machine.
"""

import json
import os
import subprocess
import sys

import ray


# A worker or a machine that dies costs only the job it was at.
@ray.remote(num_cpus=1, max_retries=10)
def run(braid, file, folder, job):
    command = [braid, "lab", "campaign", file, "--out", folder, "--job", str(job)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    return job, ended.returncode, ended.stderr.strip().splitlines()[-1:]


def main(file, folder, braid="braid"):
    file, folder = os.path.abspath(file), os.path.abspath(folder)
    listed = [braid, "lab", "campaign", file, "--list", "--json"]
    jobs = json.loads(subprocess.run(listed, check=True, stdout=subprocess.PIPE).stdout)
    ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
    waiting = [run.remote(braid, file, folder, j["job"]) for j in jobs]
    worst = 0
    while waiting:
        ended, waiting = ray.wait(waiting)
        job, status, said = ray.get(ended[0])
        worst = max(worst, status)
        print(f"[{len(jobs) - len(waiting)}/{len(jobs)}]", *said or [f"job {job}: {status}"])
    collect = [braid, "lab", "campaign", file, "--out", folder, "--collect"]
    return worst or subprocess.run(collect, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
