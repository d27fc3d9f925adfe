/**
 * `session/set_config_option`: what a client may choose for a session, checked against the very list that it was shown.
 */
import {
  type LoadSessionResponse,
  methods,
  type SessionConfigOption,
  type SetSessionConfigOptionRequest,
  type SetSessionConfigOptionResponse,
} from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import { type ChoiceSettings, type Chosen, configOptions, isPermissionMode, isThoughtLevel } from '../../shared/session-choices.ts';
import type { Session } from '../sessions/session.ts';
import type { AgentAppParts } from './agent-app.ts';
import type { ConnectionView } from '../sessions/session-table.ts';
import type { Connection } from './connection.ts';
import { modeState } from './modes.ts';

/** In the middle of a turn it holds from the next step on. Answers with the whole list, as it is then. */
export async function setSessionConfigOption(
  parts: AgentAppParts,
  connection: Connection,
  params: SetSessionConfigOptionRequest,
): Promise<SetSessionConfigOptionResponse> {
  connection.refuseUnlessEditor(methods.agent.session.setConfigOption);
  const session = (await parts.sessions()).get(params.sessionId);
  await choose(session, offered(optionsOf(session), params), params.value);
  return { configOptions: optionsOf(session) };
}

/** What the answer to a request that opens a session says of its choices. Automation gives a mode with the session, and is not shown it. */
export function choicesFor(
  settings: ChoiceSettings,
  { profile, client }: ConnectionView,
  chosen: Pick<Chosen, 'mode' | 'choices'>,
): Pick<LoadSessionResponse, 'modes' | 'configOptions'> {
  if (profile !== 'editor') return {};
  return { modes: modeState(chosen.mode), configOptions: configOptions(settings, chosen, client.booleanOptions === true) };
}

function optionsOf({ identity, chosen, settings }: Session): SessionConfigOption[] {
  return configOptions(settings, chosen, identity.client.booleanOptions === true);
}

/** The id of an option that the session has and that may have this value. @throws ServerError INVALID_PARAMS, saying what is expected */
function offered(options: readonly SessionConfigOption[], { configId, value }: SetSessionConfigOptionRequest): string {
  const option = options.find(({ id }) => id === configId);
  if (option === undefined)
    throw refused(
      'configId',
      'is none of the options that the session offers',
      options.map(({ id }) => id),
    );
  const expected = valuesOf(option);
  if (!expected.includes(value)) throw refused('value', `is none of the values of the option ${option.id}`, expected);
  return option.id;
}

function valuesOf(option: SessionConfigOption): readonly (string | boolean)[] {
  if (option.type === 'boolean') return [true, false];
  return option.options.flatMap((entry) => ('group' in entry ? entry.options.map(({ value }) => value) : [entry.value]));
}

/** @param value one that {@link offered} has passed */
async function choose(session: Session, configId: string, value: string | boolean): Promise<void> {
  if (typeof value === 'boolean') return await session.setChoices({ showThoughts: value });
  if (configId === 'model') return await session.setChoices({ model: value });
  if (configId === 'thought_level' && isThoughtLevel(value)) return await session.setChoices({ thoughtLevel: value });
  if (configId === 'mode' && isPermissionMode(value)) return await session.setMode(value);
  throw new ServerError('INTERNAL', 'An option is offered that nothing sets.');
}

function refused(field: string, what: string, expected: readonly (string | boolean)[]): ServerError {
  const message = `${field} ${what}: expected one of ${expected.join(', ')}.`;
  return new ServerError('INVALID_PARAMS', message, { data: { field, expected: [...expected] } });
}
