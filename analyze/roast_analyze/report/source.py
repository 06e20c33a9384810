"""What a page is about: a trace, several traces, or a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from roast_analyze.report import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.open.session import Session
    from roast_analyze.report.listing import Listing
    from roast_analyze.report.tables import Field, Table


class Source:
    """What the rows of tables come from, with the texts that all tables of a page share."""

    #: View to column to its description.
    comments: Mapping[str, Mapping[str, str]]
    #: Which rows a table shows, if there are more.
    chosen: ClassVar[str]

    @property
    def start_t(self) -> float:
        """Zero of times, seconds since the epoch."""
        return 0.0

    def command(self, listing: Listing) -> str:
        """Return the command that prints the rows of a listing in a terminal."""
        return self.view_command(listing.view)

    def view_command(self, view: str) -> str:
        """Return the command that prints a view in a terminal."""
        raise NotImplementedError

    def table(
        self,
        name: str,
        title: str,
        listing: Listing,
        shown: tuple[Field, ...],
        *,
        chosen: str = "",
        has_view: bool = True,
        **cells: Any,
    ) -> Table:
        """Return the table of a listing: see :func:`roast_analyze.report.tables.build`.

        Without ``has_view`` no view has these rows, only the query of the listing.
        """
        return tables.build(
            name,
            title,
            listing,
            shown,
            comments=self.comments.get(listing.view, {}),
            command=self.command(listing) if has_view else "",
            start_t=self.start_t,
            chosen=chosen or self.chosen,
            **cells,
        )


def query_comments(trace: Session) -> dict[str, dict[str, str]]:
    """Return the descriptions of the columns of all views."""
    return {
        view.name: {column.name: column.comment for column in view.columns}
        for view in trace.views()
    }
