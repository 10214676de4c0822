"""Models of requests and answers, with examples; the OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

INSTANCE: dict[str, Any] = {
    "format": "spectralbai-instance/3",
    "n_arms": 3,
    "edges": [[0, 1, 1.0]],
    "R": 0.01,
    "low": 0.0,
    "high": 1.0,
    "binary": True,
    "tolerance": 0.02,
    "labels": ["current", "blue", "bluer"],
}
ARMS = "label,milligrams\nplacebo,0\n10 mg,10\n20 mg,20\n40 mg,40\n"

Document = Annotated[dict[str, Any], Field(description="An instance: spectralbai-instance/3", examples=[INSTANCE])]


# The library checks these, so that the error messages are the same as everywhere else.
Number = Annotated[Any, WithJsonSchema({"type": "number"})]
NumberOrNull = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]})]
Whole = Annotated[Any, WithJsonSchema({"type": "integer"})]
WholeOrNull = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "null"}]})]
Words = Annotated[Any, WithJsonSchema({"type": "string"})]
WordsOrNull = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]
Amount = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})]
"""A number, or a text such as "0.5%" where outcomes lie between 0 and 1."""
AmountOrNull = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]})]
NamesOrNull = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
]
Goal = Annotated[Any, WithJsonSchema({"type": "string", "enum": ["max", "min"]})]


class Request(BaseModel):
    """A request: other keys, and values of other types, are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Creation(Request):
    """A study to create; `spectralbai study create` has the same choices."""

    name: Words = Field(examples=["pages"])
    instance: Document
    delta: Number = Field(0.05, description="Risk of a wrong answer.")
    goal: Goal = Field("max", description="Which mean outcome is best.")
    budget: WholeOrNull = Field(None, description="Trials after which the study ends, decided or not.")
    until: NumberOrNull = Field(None, description="When it ends, in seconds since 1970.")
    failed_as: NumberOrNull = Field(None, description="Outcome that a failed trial counts as; if null, it is repeated.")
    items: NamesOrNull = Field(
        None, description="Names of the items that options are tried on, if the instance has items.", examples=[None]
    )
    seed: WholeOrNull = Field(None, description="Fixes the order of the items: for simulations only.")
    control: WordsOrNull = Field(None, description="The option that others are compared with.", examples=["current"])
    control_share: NumberOrNull = Field(None, description="Least part of the trials that it gets.", examples=[None])
    lapse_as: NumberOrNull = Field(None, description="Outcome of tickets not told within `window`.", examples=[None])
    window: NumberOrNull = Field(None, description="Seconds after which tickets lapse.", examples=[None])


class Asking(Request):
    """How many trials are wanted, by whom, and for how long."""

    n: Whole = Field(1, examples=[5])
    worker: Words = Field("", examples=["server 1"])
    lease: Number = Field(3600.0, description="Seconds until a ticket no longer counts as pending.")


class TicketOutcome(Request):
    """The outcome of a ticket, or why its trial failed."""

    ticket: Words = Field(examples=["4f1d0f4bd2c1a9be"])
    outcome: NumberOrNull = Field(None, examples=[1.0])
    failed: WordsOrNull = Field(None, examples=["the page did not load"])


class Telling(Request):
    """Outcomes of tickets: all are recorded, or none."""

    results: list[TicketOutcome]


class Count(Request):
    """Trials and successes of an option."""

    label: Words = Field(examples=["blue"])
    trials: Whole = Field(examples=[120])
    successes: Whole = Field(examples=[17])


class Counts(Request):
    """Counts, such as a day's traffic: all are recorded, or none."""

    id: Words = Field(description="Names these counts: the same again change nothing.", examples=["2026-05-17"])
    past: bool = Field(False, description="They are older than the study: they only inform.")
    rows: list[Count]


class PastResult(Request):
    """A result without a ticket."""

    label: Words = Field(examples=["blue"])
    outcome: Number = Field(examples=[0.0])


class PastResults(Request):
    """Results that come without tickets: they only inform."""

    origin: Words = Field(description="Where they come from: the same again change nothing.", examples=["pilot of May"])
    rows: list[PastResult]
    tickets: list[str] = Field([], description="Tickets that the results name: those of this study are refused.")
    origins: list[str] = Field([], description="Origins that the results name: those of this study are refused.")


class KnownOutcome(Request):
    """The outcome of an option on an item."""

    label: Words = Field(examples=["blue"])
    item: Words = Field(examples=["question 7"])
    outcome: Number = Field(examples=[0.0])


class KnownOutcomes(Request):
    """Outcomes that are known from elsewhere: these pairs are not handed out."""

    origin: Words = Field(description="Where they come from.", examples=["scores of May"])
    rows: list[KnownOutcome]


class Abandoning(Request):
    """Tickets whose trials will not be done."""

    tickets: list[Words] = Field(examples=[["4f1d0f4bd2c1a9be"]])


class Withdrawing(Request):
    """An option to take out."""

    label: Words = Field(examples=["bluer"])


class Joining(Request):
    """An instance of all options, the present ones first."""

    instance: Document
    check: bool = Field(False, description="Only say what would change, or why it is refused.")


class Login(Request):
    """A token, which is stored in a cookie that scripts cannot read."""

    token: str


class Import(Request):
    """An exported study, to restore under its old name or another."""

    document: Annotated[Any, WithJsonSchema({"type": "object"})] = Field(examples=[{"format": "spectralbai-export/6"}])
    name: WordsOrNull = None


class Tables(Request):
    """Tables as CSV text, and which of their columns say what; `spectralbai instance` has the same choices."""

    arms: str | None = Field(None, description="CSV with a row per option.", examples=[ARMS])
    edges: str | None = Field(None, description="CSV of label, label and perhaps weight.", examples=[None])
    observations: str | None = Field(None, description="CSV of label and outcome.", examples=[None])
    features: str | None = Field(None, description="Columns to compare options by.", examples=["milligrams"])
    neighbors: int | None = Field(None, description="Nearest options that each is joined to.")
    by: str | None = Field(None, description="Column with categories.")
    label: str | None = Field(None, description="Column with the labels; the first if null.")
    guess: str | None = Field(None, description="Column with guesses of the mean outcomes.")
    R: float | None = Field(None, description="Bound on the roughness of the means.")
    step: AmountOrNull = Field(None, description="Instead of R: neighbours differ by at most so much.", examples=[0.15])
    sigma: float | None = Field(None, description="Standard deviation of one outcome.", examples=[0.03])
    low: float | None = Field(None, description="Least possible outcome, instead of sigma.")
    high: float | None = Field(None, description="Largest possible outcome, instead of sigma.")
    binary: bool = Field(False, description="Only low and high occur, 0 and 1 if not given.")
    tolerance: Amount = Field(0.0, description="An option this close to the best is as good.", examples=[0.1])
    items: Any = Field(
        None,
        description="Items that options are tried on, as an instance has them. Options need not be alike then.",
        examples=[None],
    )


class Planning(Tables):
    """An instance, or tables to make one from, and the risk."""

    instance: Document | None = None
    delta: float = Field(0.05, description="Risk of a wrong answer.")


class Reply(BaseModel):
    """An answer; later versions may add keys."""

    model_config = ConfigDict(extra="allow")


class Health(Reply):
    status: Literal["ok"]
    version: str


class Session(Reply):
    """What the caller may do."""

    needed: bool = Field(description="Whether a token is needed.")
    access: Literal["none", "read-only", "read-write"]
    label: str | None
    study: str | None = Field(description="The only study that the token is for, or null.")


class Line(Reply):
    """A study in a line."""

    name: str
    created: str
    n_arms: int
    goal: str
    delta: float
    results: int
    state: str
    best: str | None
    damage: str | None = Field(description="What is wrong with its records, if its state is damaged.")


class Lines(Reply):
    """Studies, oldest first; `next` is the `after` of the next page, or null."""

    studies: list[Line]
    next: str | None


class StudyReply(Reply):
    """The definition of a study."""

    name: str
    created: str
    definition: dict[str, Any]
    versions: dict[str, str]


class TicketReply(Reply):
    """A trial to do."""

    ticket: str
    label: str
    item: str | None
    arm: int
    block: int | None
    worker: str
    issued: str
    expires: str


class Tickets(Reply):
    tickets: list[TicketReply]


class Asked(Tickets):
    """Trials to do. There are none once the study has decided or ended: `answer` says so."""

    answer: str | None


class Recorded(Reply):
    """How many of these results are new, and how many were known."""

    recorded: int
    known: int


class Abandoned(Reply):
    abandoned: list[str]


class Share(Reply):
    label: str
    share: float


class Shares(Reply):
    """How to split the next traffic."""

    shares: list[Share]


class Withdrawn(Reply):
    withdrawn: str
    new: bool
    answer: str


class Joined(Reply):
    joined: list[str]
    changes: str
    answer: str


class Stopped(Reply):
    new: bool = Field(description="Whether it was running.")
    answer: str


class Checked(Reply):
    """What a check of a study found."""

    name: str
    events: int
    results: int
    damage: list[str] = Field(description="What is not as it should be, in words.")
    sound: bool


class Deleted(Reply):
    deleted: str


class StatusReply(Reply):
    """The status of a study; docs/studies.md explains the numbers."""

    name: str
    time: str
    state: Literal["running", "decided", "ended", "inconsistent"]
    answer: str
    advice: list[str]
    goal: str
    delta: float
    results: int
    best: str | None
    verdict: dict[str, Any] = Field(description="What the stopping rule said: spectralbai-verdict/2")
    items: dict[str, Any] | None = Field(description="How far it is with its items; null if trials have none.")
    candidates: list[str] | None
    computing: bool = Field(description="Whether the forecast, or also estimates and intervals, are not there yet.")
    arms: list[dict[str, Any]]
    categories: list[dict[str, Any]] | None
    compared: str | None = Field(description="How many arms are certainly better or worse than the control, in words.")
    arms_found: int = Field(description="Arms of that category and with that text, of which `arms` is a page.")
    next: int | None = Field(description="The `after` of the next page, or null.")
    tables: dict[str, Any] = Field(description="Numbers as people read them: of the arms shown, in their order.")


class Past(Reply):
    """A result that was told."""

    number: int
    label: str
    item: str | None
    outcome: float
    told: str
    ticket: str | None
    worker: str | None
    origin: str | None


class ResultsReply(Reply):
    """Results, the newest first; `next` is the `before` of the next page, or null."""

    results: list[Past]
    next: int | None


class History(Reply):
    """What the stopping rule said each time it was read, for the picture of the race."""

    kind: Literal["arms", "categories"]
    names: list[str] = Field(description="What the numbers of `lacking` are of, in this order.")
    samples: list[int]
    best: list[str]
    candidates: list[int]
    lacking: list[list[float | None]] = Field(description="For each check what the accounts still lack, in nats.")
    left: list[list[int]] = Field(description="For each check how many arms of each name may be best.")
    needed: float = Field(description="What an account lacks at the start, in nats.")


class OutcomesReply(Reply):
    """Outcomes of options on items: the first options, and items at equal steps, in the order in which they were begun.
    The numbers are null where a pair was not tried."""

    options: list[str]
    items: list[str]
    outcomes: list[list[float | None]] = Field(description="A row for each option, a column for each item.")
    low: float | None = Field(description="The least possible outcome, or the least of these.")
    high: float | None
    begun: int = Field(description="Items that were begun; more than `items` has, if those are some of them.")
    available: int | None = Field(description="Items that can be tried; null if there is no end.")


class GraphReply(Reply):
    """The graph, with positions to draw it."""

    kind: Literal["edges", "categories"]
    nodes: list[dict[str, Any]]
    edges: list[list[float]]
    categories: list[dict[str, Any]]


class MadeReply(Reply):
    """An instance made from tables, and remarks on how they were read and what was chosen."""

    instance: dict[str, Any]
    remarks: list[str]


class Planned(Reply):
    """What to expect of a study, before any trial."""

    instance: dict[str, Any]
    remarks: list[str]
    expected: float | None = Field(description="About how many trials, by a rule of thumb that is right within a half.")
    expected_without_graph: float | None
    saving: float = Field(description="The part of the trials that the graph saves.")
    advice: str
    plan: dict[str, Any]


class ProblemReply(Reply):
    """An error, in the format of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
