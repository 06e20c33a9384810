"""How the recorder gets to a scheduler whose environment lacks it.

The plugin is pickled by value: the classes and functions it needs travel inside the
pickle. The scheduler then runs the client's version of the recorder, and an environment
with `distributed` alone will do.
"""

from __future__ import annotations

from typing import Any

import cloudpickle


def dumps_by_value(plugin: Any) -> bytes:
    """Pickle an object of the recorder together with the recorder's code.

    Parameters
    ----------
    plugin : object
        It must not refer to what only this process has.
    """
    import roast_recorder
    import roast_schemas

    packages = (roast_recorder, roast_schemas)
    for package in packages:
        cloudpickle.register_pickle_by_value(package)
    try:
        pickled: bytes = cloudpickle.dumps(plugin)
        return pickled
    finally:
        for package in packages:
            cloudpickle.unregister_pickle_by_value(package)
