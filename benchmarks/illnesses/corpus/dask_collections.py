"""Shapes of programs with Dask's collections: arrays, dataframes and bags.

Pandas is imported where it is used, as it would add to the memory of workers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from distributed import Client, wait
from illness import Run, Shape

if TYPE_CHECKING:
    import pandas as pd
    from tasks import Stage
    from troubles import Trouble

# -- bags ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Bag(Shape):
    """A bag of numbers, mapped by stages that Dask fuses, and folded."""

    tasks: int  #: Number of partitions.
    stages: tuple[Stage, ...]
    rounds: int = 1  #: How often it is computed.
    gap: float = 0.0  #: Seconds of the client between two rounds.
    nbytes: int = 0  #: Size of each item, and `items` of each partition.
    items: int = 1
    #: How sums of groups are found: ``foldby`` or ``groupby``, which moves all items.
    by: str = ""
    contents: int = 0  #: Bytes of each item that are in the graph.
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        for turn in range(self.rounds):
            numbers: list[Any] = list(range(self.tasks))
            if self.contents:
                random = np.random.default_rng(turn)
                numbers = [(number, random.bytes(self.contents)) for number in numbers]
            bag = db.from_sequence(numbers, npartitions=self.tasks)
            for stage in self.stages:
                bag = bag.map(Mapped(replace(stage, troubles=self.troubles)))
            if self.by:
                bag = bag.map(shots, self.items, self.nbytes).flatten()
            if self.by == "groupby":
                bag = bag.groupby(receiver, shuffle="tasks").map(len)
                bag.compute(scheduler="distributed")
            elif self.by:
                bag.foldby(receiver, count, 0, add, 0).compute(scheduler="distributed")
            else:
                bag.fold(max, split_every=12).compute(scheduler="distributed")
            if turn < self.rounds - 1:
                time.sleep(self.gap)


class Mapped:
    """A stage as the function of a bag, whose items may have contents."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.__name__ = stage.name

    def __call__(self, item: Any) -> int:
        number = item[0] if isinstance(item, tuple) else item
        self.stage(number)
        return int(number)


def shots(number: int, items: int, nbytes: int) -> list[tuple[int, np.ndarray]]:
    return [((number + item) % 40, np.zeros(nbytes, "u1")) for item in range(items)]


def receiver(shot: tuple[int, np.ndarray]) -> int:
    return shot[0]


def count(total: int, shot: tuple[int, np.ndarray]) -> int:
    return total + 1


def add(one: int, other: int) -> int:
    return one + other


# -- arrays ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Array(Shape):
    """Blocks that are read, changed by a method, mapped again, and reduced."""

    blocks: tuple[int, ...]  #: Number of blocks in each direction.
    read: Stage  #: `then` follows the method, if given.
    then: Stage | None = None
    side: int = 30  #: Number of values of a block in each direction.
    #: ``mean``, ``var`` and ``rows`` reduce the array. ``transpose`` combines it with its
    #: transpose, ``overlap`` with a halo, ``rechunk`` turns blocks of rows into blocks of
    #: columns, ``sums`` are running sums, and ``less_mean`` subtracts the mean.
    method: str = "mean"
    rounds: int = 1  #: How often `then` is applied to the array that is persisted.
    halo: float = 0.01  #: Part of a block.
    pencils: int = 32  #: Number of blocks of columns.
    scan: str = "blelloch"  #: Method of running sums.
    troubles: tuple[Trouble, ...] = ()

    def mapped(self, array: da.Array, stage: Stage, *others: da.Array) -> da.Array:
        stage = replace(stage, troubles=self.troubles)
        form = {"dtype": float, "meta": np.zeros((0,) * array.ndim), "token": stage.name}
        return array.map_blocks(on_block, *others, stage=stage, **form)

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        shape = tuple(self.side * number for number in self.blocks)
        array = self.mapped(da.zeros(shape, chunks=self.side), self.read)
        for _ in range(self.rounds):
            array = getattr(self, self.method)(array)
            if self.rounds > 1:
                array = client.persist(array)
                wait(array)
        array.max().compute()

    def mean(self, array: da.Array) -> da.Array:
        if self.then:
            array = self.mapped(array, self.then)
        return array.mean()

    def var(self, array: da.Array) -> da.Array:
        return array.var()

    def rows(self, array: da.Array) -> da.Array:
        return array.max(axis=1)

    def transpose(self, array: da.Array) -> da.Array:
        return self.mapped(array, self.then or self.read, array.T)

    def less_mean(self, array: da.Array) -> da.Array:
        return self.mapped(array - array.mean(), self.then or self.read)

    def overlap(self, array: da.Array) -> da.Array:
        stage = replace(self.then or self.read, troubles=self.troubles)
        depth = max(1, int(self.side * self.halo))
        form = {"dtype": float, "meta": np.zeros((0,) * array.ndim), "token": stage.name}
        return da.map_overlap(
            on_block, array, depth=depth, boundary="none", stage=stage, **form
        )

    def rechunk(self, array: da.Array) -> da.Array:
        columns = -(-array.shape[1] // self.pencils)
        return self.mapped(array.rechunk((array.shape[0], columns)), self.then or self.read)

    def sums(self, array: da.Array) -> da.Array:
        stage = self.then or self.read
        return da.reductions.cumreduction(
            np.cumsum,
            Attached(stage),
            0.0,
            array,
            axis=0,
            dtype=float,
            method=self.scan,
            preop=np.sum,
        )


def on_block(
    block: np.ndarray, *others: Any, stage: Stage, block_info: Any = None
) -> np.ndarray:
    if block.size and block_info:
        place = block_info[0]["chunk-location"]
        stage(int(np.ravel_multi_index(place, block_info[0]["num-chunks"])))
    return block + 1.0


class Attached:
    """Attach a segment to the previous one."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.__name__ = stage, stage.name

    def __call__(self, before: Any, after: Any) -> Any:
        self.stage(0)
        return before + after


# -- dataframes ------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Frame(Shape):
    """Partitions that are read, mapped, and summed."""

    tasks: int  #: Number of partitions.
    read: Stage
    then: Stage | None = None
    rows: int = 100  #: Rows of a partition.
    #: Number of partitions before `then`, which takes so much longer.
    repartitioned: int | None = None
    by_row: bool | None = None  #: Whether a Python function is applied to each row.
    from_pandas: int = 0  #: Bytes of a frame of pandas that the graph contains.
    rounds: int = 1  #: How often it is computed.
    gap: float = 0.0  #: Seconds of the client between two rounds.
    shuffled: bool = True  #: Whether the sums are of many groups.
    troubles: tuple[Trouble, ...] = ()

    def prepare(self, run: Run, client: Client) -> None:
        """Import pandas, so that the recording begins with the computation."""
        client.run(imported)

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        for turn in range(self.rounds):
            with dask.config.set({"dataframe.convert-string": False}):
                frame = self.frame()
                (frame.groupby("x").y.sum() if self.shuffled else frame.y.sum()).compute()
            if turn < self.rounds - 1:
                time.sleep(self.gap)

    def frame(self) -> Any:
        import dask.dataframe as dd

        meta = rows_of(0, 0)
        read = replace(self.read, troubles=self.troubles)
        if self.from_pandas:
            whole = rows_of(0, self.from_pandas // 16)
            frame = dd.from_pandas(whole, npartitions=self.tasks)
            frame = frame.map_partitions(on_rows, read, meta=meta)
        else:
            numbers = list(range(self.tasks))
            frame = dd.from_map(
                read_rows, numbers, args=[self.rows, read], meta=meta, label=read.name
            )
        if self.by_row is not None:
            frame = frame.map_partitions(measure_rows, self.by_row, meta=meta)
        if self.then is not None:
            then = replace(self.then, troubles=self.troubles)
            if self.repartitioned:
                frame = frame.repartition(npartitions=self.repartitioned)
            frame = frame.map_partitions(on_rows, then, self.rows, meta=meta, token=then.name)
        return frame


def imported() -> str:
    import dask.dataframe as dd

    return dd.__name__


def rows_of(number: int, rows: int) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"x": (np.arange(rows) + number) % 40, "y": np.ones(rows)})


def read_rows(number: int, rows: int, stage: Stage) -> pd.DataFrame:
    stage(number)
    return rows_of(number, rows)


def on_rows(part: pd.DataFrame, stage: Stage, rows: int = 0) -> pd.DataFrame:
    """Do the work of a stage, once for each so many rows."""
    if len(part):
        for turn in range(round(len(part) / rows) if rows else 1):
            stage(int(part.x.iloc[0]) + 1_000 * turn)
    return part


def measure_rows(part: pd.DataFrame, by_row: bool) -> pd.DataFrame:
    if by_row:
        return part.assign(
            y=part.apply(lambda row: sum(abs(row.x - n) for n in range(3)), axis=1)
        )
    return part.assign(y=sum(abs(part.x - n) for n in range(3)))
