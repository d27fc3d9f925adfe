"""dsh-acp as an installed agent of Harbor, from a tarball of this project.

    npm pack                                   # writes dsh-acp-0.1.0.tgz
    export DSH_ACP_TARBALL=$PWD/dsh-acp-0.1.0.tgz
    harbor run -d terminal-bench@2.0 -m deepseek/deepseek-flash --agent-import-path examples.harbor.dsh_acp_agent:DshAcp

Inside the container `dsh-acp run` starts the server and speaks ACP with it. Its one result line becomes Harbor's context.
"""

import json
import os
import shlex
from pathlib import Path

from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

KEYS = ("DEEPSEEK_API_KEY", "DSH_ACP_API_KEY", "DSH_ACP_BASE_URL")
RESULTS = "/logs/agent/dsh-acp.jsonl"


class DshAcp(BaseInstalledAgent):
    @staticmethod
    def name() -> str:
        return "dsh-acp"

    def get_version_command(self) -> str | None:
        return "dsh-acp --version"

    async def install(self, environment: BaseEnvironment) -> None:
        tarball = Path(os.environ["DSH_ACP_TARBALL"])
        await environment.upload_file(tarball, "/installed-agent/dsh-acp.tgz")
        await self.exec_as_root(
            environment,
            "command -v node >/dev/null || (apt-get update -qq && apt-get install -y -qq nodejs npm git); "
            "node -e 'const [a, b] = process.versions.node.split(\".\"); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' "
            "|| (npm install -g n && n 20); "
            "npm install -g /installed-agent/dsh-acp.tgz",
        )

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        model = (self.model_name or "deepseek-flash").split("/", 1)[-1]
        job = json.dumps({"id": "task", "prompt": instruction, "cwd": ".", "mode": "full-access"})
        env = {name: value for name in KEYS if (value := self._get_env(name))}
        # 0 and 1 both mean that the job ended and has its line; Harbor's own tests judge the work.
        await self.exec_as_agent(
            environment,
            f"printf '%s\\n' {shlex.quote(job)} > /tmp/dsh-acp-job.jsonl && cp /tmp/dsh-acp-job.jsonl ./.dsh-acp-job.jsonl && "
            f"(dsh-acp run ./.dsh-acp-job.jsonl --out {RESULTS} --plain --model {shlex.quote(model)} || [ $? -eq 1 ]); "
            "rm -f ./.dsh-acp-job.jsonl",
            env=env,
        )

    def populate_context_post_run(self, context: AgentContext) -> None:
        path = self.logs_dir / "dsh-acp.jsonl"
        if not path.exists():
            return
        result = json.loads(path.read_text().splitlines()[-1])
        usage = result.get("usage", {})
        context.n_input_tokens = usage.get("inputTokens", 0) + usage.get("cacheReadTokens", 0)
        context.n_cache_tokens = usage.get("cacheReadTokens", 0)
        context.n_output_tokens = usage.get("outputTokens", 0)
        context.cost_usd = result.get("costUsd")
        context.metadata = {name: result.get(name) for name in ("status", "stopReason", "errorClass", "error", "times")}
