"""An evaluation by inspect_ai that asks only what decides which prompt is best: python3 examples/inspect_pick.py

A sample is a pair of a prompt and a question. inspect_ai asks `Race` about each before it runs, and samples that the
study does not need are skipped. The mock model of inspect_ai answers, so this needs neither a network nor a key. Run it
again after Ctrl-C, and it goes on.
"""

import asyncio
import csv
import math
from pathlib import Path

import answer
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, match, value_to_float
from inspect_ai.solver import generate
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import EarlyStop

import spectralbai as sb

Pair = tuple[str, str]
HERE = Path(__file__).parent


class Race:
    """The early stopping: runs the pairs that a study asks for, block by block, and skips the others."""

    def __init__(self, study: sb.Study, pairs: dict[str, Pair]) -> None:
        self.study = study
        self.pairs = pairs
        self.place = {item: place for place, item in enumerate(study.definition.items or ())}
        self.planned = -1  # the place of the last item of which it is known which prompts are asked
        self.tickets: dict[Pair, sb.study.Ticket] = {}
        self.told = asyncio.Condition()

    async def start_task(self, task: object, samples: list[Sample], epochs: int) -> str:
        if epochs != 1:
            raise ValueError("ask every question once; repetitions are items of their own")
        self.study.abandon(*self.study.pending())  # what was under way when an earlier run ended
        return "spectralbai"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        pair = self.pairs[str(id)]
        place = self.place[pair[1]]
        async with self.told:
            while place > self.planned:
                # What comes next depends on the tickets that are out.
                await self.told.wait_for(lambda: not self.tickets or place <= self.planned)
                if place > self.planned:
                    self.plan()
                    self.told.notify_all()
        return None if pair in self.tickets else EarlyStop(id=id, epoch=epoch, reason="not needed for the decision")

    def plan(self) -> None:
        """Takes every ticket of the block that is open; if there is none, nothing more is needed."""
        tickets = self.study.ask(10_000, worker="inspect_ai", lease=86400)
        self.tickets = {(ticket.label, str(ticket.item)): ticket for ticket in tickets}
        self.planned = max((self.place[item] for _, item in self.tickets), default=len(self.place))

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:
        (score,) = scores.values()
        async with self.told:
            self.study.tell(self.tickets.pop(self.pairs[str(id)]), value_to_float()(score.score.value))
            if not self.tickets:
                self.told.notify_all()

    async def complete_task(self) -> dict[str, object]:
        return {"answer": self.study.status().answer}


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HERE / f"{name}.csv").read_text("utf-8").splitlines()))


def mock(messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig) -> ModelOutput:
    prompt, question = messages[-1].text.split("\n\n")
    output = ModelOutput.from_content("mockllm/model", answer.model(prompt, question))
    output.usage = ModelUsage()  # otherwise tokens are counted, which takes a download
    return output


def opened(prompts: list[dict[str, str]], questions: list[dict[str, str]]) -> sb.Study:
    """Returns the study, which is made if it is not there."""
    try:
        return sb.Study.open("prompts with inspect_ai")
    except sb.NotFound:
        graph, items = sb.Graph.from_edges(len(prompts), []), sb.Items.listed(len(questions))
        problem = sb.Problem.bounded(graph, math.inf, low=0, high=1, tolerance=0.02, items=items)
        instance = sb.Instance(problem, labels=[prompt["option"] for prompt in prompts])
        names = [question["item"] for question in questions]
        return sb.Study.create("prompts with inspect_ai", instance, delta=0.05, items=names)


def main() -> None:
    prompts, questions = rows("prompts"), rows("questions")
    with opened(prompts, questions) as study:
        samples, pairs = [], {}
        for question in questions:
            for prompt in prompts:
                id_ = f"{prompt['option']} | {question['item']}"
                pairs[id_] = prompt["option"], question["item"]
                text = f"{prompt['prompt']}\n\n{question['question']}"
                samples.append(Sample(id=id_, input=text, target=question["answer"]))
        task = Task(
            dataset=MemoryDataset(samples), solver=generate(), scorer=match(), early_stopping=Race(study, pairs)
        )
        model = get_model("mockllm/model", custom_outputs=mock)
        # All samples wait at once, since any may have to wait for others; max_connections limits the calls.
        (log,) = eval(task, model=model, max_samples=len(samples), max_connections=10, display="none")
        assert log.results is not None and log.results.early_stopping is not None
        skipped = len(log.results.early_stopping.early_stops)
        print(study.status().answer)
        print(f"{len(samples) - skipped:,} of {len(samples):,} samples were run.")


if __name__ == "__main__":
    main()
