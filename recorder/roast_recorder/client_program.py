"""Dask's client preload that reports which program, user and host a client belongs to.

::

    distributed.client.preload: [roast_recorder.client_program]

in Dask's configuration, where the clients of a shared scheduler run. The report is an event of
the scheduler, so it costs one message when a client connects, and a scheduler that is not
recorded ignores it. Clients that record report it as well.
"""

from roast_recorder.probes.client_program import dask_setup

__all__ = ["dask_setup"]
