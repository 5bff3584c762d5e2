"""A Run as its author wrote it, and as the API server of Fairlead before engines stored it.

The definitions up to then had `default:` for these fields, so the stored object has them all.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

Json = dict[str, Any]

AS_WRITTEN: Final[Json] = yaml.safe_load("""
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata:
  name: stored
spec:
  framework: mpi
  template:
    spec:
      containers:
      - name: main
        image: example.invalid/none
  replicas:
    launcher: {}
    worker:
      count: 2
  mpi: {}
""")
STORED: Final[Json] = yaml.safe_load("""
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata:
  name: stored
spec:
  backoffLimit: 3
  cleanPodPolicy: Running
  framework: mpi
  kind: job
  mpi:
    implementation: OpenMPI
    launcherAsWorker: false
    sshAuthMountPath: /root/.ssh
  replicas:
    launcher:
      count: 1
      restartPolicy: OnFailure
    worker:
      count: 2
      restartPolicy: OnFailure
  restartScope: Replica
  suspend: false
  template:
    spec:
      containers:
      - name: main
        image: example.invalid/none
""")
