"""An example: `inspect eval examples/inspect/task.py --model openai/gpt-5`."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

from dsh_acp import dsh_acp

BROKEN = "export const double = (n) => n + n + 1;\n"
CHECK = "import('./double.js').then(({ double }) => process.exit(double(21) === 42 ? 0 : 1))"


@scorer(metrics=[accuracy()])
def check_passes():
    async def score(state: TaskState, target: Target) -> Score:
        ran = await sandbox().exec(["node", "-e", CHECK])
        return Score(value="C" if ran.success else "I", explanation=ran.stderr)

    return score


@task
def mend_double() -> Task:
    return Task(
        dataset=[Sample(input="double.js does not double. Mend it.", files={"double.js": BROKEN, "package.json": '{"type":"module"}'})],
        solver=dsh_acp(),
        sandbox=("docker", "compose.yaml"),
        scorer=check_passes(),
    )
