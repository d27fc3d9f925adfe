/**
 * What a contained command finds in its environment, beside what every command does: caches where it can write, and no way to programs of the desktop
 * or of another user's making.
 */
import { isAbsolute, join } from 'node:path';
import { isInsideAny } from '../../../shared/path-inside.ts';
import { words } from '../../../shared/permission/comparable-names.ts';
import type { Environment } from '../environment.ts';

/** Of programs that fail where they cannot write their cache, and where it lies in the home directory. */
const caches = {
  npm_config_cache: '.npm',
  GOCACHE: '.cache/go-build',
  UV_CACHE_DIR: '.cache/uv',
  YARN_CACHE_FOLDER: '.cache/yarn',
} as const;

/** They name sockets that are hidden, or hold what opens one. */
const socketVariables = words(`
  DISPLAY WAYLAND_DISPLAY WAYLAND_SOCKET XAUTHORITY ICEAUTHORITY SESSION_MANAGER XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS
  AT_SPI_BUS_ADDRESS SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO GNOME_KEYRING_CONTROL PULSE_SERVER PIPEWIRE_REMOTE DOCKER_HOST CONTAINER_HOST
  TMUX TMUX_PANE STY NVIM NVIM_LISTEN_ADDRESS KITTY_LISTEN_ON ALACRITTY_SOCKET WEZTERM_UNIX_SOCKET VSCODE_IPC_HOOK VSCODE_IPC_HOOK_CLI
  VSCODE_GIT_IPC_HANDLE GIT_ASKPASS SSH_ASKPASS`);

/** Caches in the home directory can be read only, unless the settings say otherwise: these go to `/tmp`. */
export function insideEnvironment({ HOME: home, ...ambient }: Environment, writable: readonly string[]): Record<string, string> {
  const moved = Object.entries(caches).filter(
    ([name, place]) => ambient[name] === undefined && (home === undefined || !isInsideAny(writable, join(home, place))),
  );
  return { TMPDIR: '/tmp', ...Object.fromEntries(moved.map(([name, place]) => [name, `/tmp/${place}`])) };
}

/** Variables of the server's environment that are left out: all that lead to sockets, but those that lead to what the settings open. */
export function withheldInside(ambient: Environment, writable: readonly string[]): string[] {
  return socketVariables.filter((name) => {
    const value = ambient[name];
    const path = value?.replace(/^unix:(?:path=|\/\/)?/, '');
    return value !== undefined && !(path !== undefined && isAbsolute(path) && isInsideAny(writable, path));
  });
}
