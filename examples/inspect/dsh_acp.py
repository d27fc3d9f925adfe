"""dsh-acp as an agent of Inspect AI, inside a task's sandbox.

The model calls of dsh-acp go to the proxy that `sandbox_agent_bridge` opens in the sandbox, so Inspect chooses the model, counts its tokens and
keeps the transcript. Inside, `dsh-acp run` is the ACP client of the server.
"""

import json

from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.model import ModelOutput, user_prompt
from inspect_ai.util import sandbox

JOB = ".dsh-acp-job.jsonl"
RESULTS = "/tmp/dsh-acp-results.jsonl"


@agent
def dsh_acp(max_steps: int = 200, wall_seconds: int = 1800) -> Agent:
    """`max_steps` and `wall_seconds` are the budget of one sample; the model is told of both."""

    async def execute(state: AgentState) -> AgentState:
        box = sandbox()
        job = {
            "id": "sample",
            "prompt": user_prompt(state.messages).text,
            "cwd": ".",
            "mode": "full-access",
            "budget": {"maxSteps": max_steps, "maxWallMs": wall_seconds * 1000},
        }
        async with sandbox_agent_bridge(state) as bridge:
            await box.write_file(JOB, json.dumps(job) + "\n")
            ran = await box.exec(
                ["dsh-acp", "run", JOB, "--out", RESULTS, "--plain", "--base-url", f"http://localhost:{bridge.port}/v1", "--model", "inspect"],
                timeout=wall_seconds + 120,
            )
            await box.exec(["rm", "-f", JOB])
            if ran.returncode not in (0, 1):
                raise RuntimeError(f"dsh-acp ended with {ran.returncode}: {ran.stderr[-1000:]}")
            result = json.loads((await box.read_file(RESULTS)).splitlines()[-1])
            if result["status"] == "error":
                raise RuntimeError(f"dsh-acp: {result.get('errorClass')}: {result.get('error')}")
            bridge.state.output = ModelOutput(model="dsh-acp", completion=result["text"])
            return bridge.state

    return execute
