"""The numbers of workers that the cluster of the client has planned and requested."""

from __future__ import annotations

import contextlib

from roast_recorder.probes import ClientProbe


class OnClient(ClientProbe):
    """Record the size when it has changed."""

    _size: dict[str, int] | None = None

    def before_write(self) -> None:
        """Record the current size, unless it is the last one that was recorded."""
        cluster = self.core.tap.read("cluster_size", self.core.client, "cluster")
        with contextlib.suppress(Exception):  # there is none, or it has no such sizes
            size = {"planned": len(cluster.plan), "requested": len(cluster.requested)}
            if size != self._size:
                self._size = size
                self.core.record("cluster_size", value=size)
