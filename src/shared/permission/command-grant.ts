/**
 * What a lasting answer about a command binds to. A yes holds for the circumstances in which it was given, and for stricter
 * ones: never for a command that may reach more than the person was told. A no holds in all of them. Pure.
 */

/** What a command runs in. */
export interface CommandConditions {
  /** It runs in a sandbox. */
  readonly contained: boolean;
  readonly network: 'on' | 'off';
}

/** `unknown`: it cannot be told now. Only a yes for the widest circumstances covers that, and none is given in it. */
export type KnownConditions = CommandConditions | 'unknown';

export interface GrantedCommand {
  readonly command: string;
  /** Canonical, where that is known. */
  readonly cwd: string;
  /** It runs on when its call has ended. */
  readonly background: boolean;
  readonly conditions: KnownConditions;
}

export interface CommandGrant {
  readonly key: string;
  readonly wider: readonly string[];
  readonly rejectKey: string;
  readonly scope: string;
  readonly circumstance: string;
}

const containments = ['contained', 'uncontained'] as const;
const networks = ['no-network', 'network'] as const;
const places = ['foreground', 'background'] as const;

/** Each list goes from strict to wide. */
export function commandGrant({ command, cwd, background, conditions }: GrantedCommand): CommandGrant {
  const { contained, network } = conditions === 'unknown' ? ({ contained: false, network: 'on' } as const) : conditions;
  const from = { containment: contained ? 0 : 1, network: network === 'off' ? 0 : 1, place: background ? 1 : 0 };
  const [key = '', ...wider] = containments
    .slice(from.containment)
    .flatMap((containment) =>
      networks
        .slice(from.network)
        .flatMap((reach) => places.slice(from.place).map((place) => JSON.stringify(['execute', cwd, command, containment, reach, place]))),
    );
  // The same words as of a yes of earlier releases, which said nothing of circumstances: it counts as given for a contained command.
  const bare = JSON.stringify(['execute', cwd, command]);
  return {
    key,
    wider: contained && !background ? [...wider, bare] : wider,
    rejectKey: bare,
    scope: 'this exact command',
    circumstance: circumstanceOf({ contained, network, background }),
  };
}

/** Behind the scope of a yes; empty for the widest one. */
function circumstanceOf({ contained, network, background }: CommandConditions & { readonly background: boolean }): string {
  const bounds = [...(contained ? ['contained'] : []), ...(network === 'off' ? ['without a network'] : [])];
  return `${background ? ' in the background' : ''}${bounds.length === 0 ? '' : ` while ${bounds.join(' and ')}`}`;
}

/** The same of a key, to stand first where a long command may be cut; given what stands in it behind the command; `isAllowed` where the key belongs to a yes. */
export function circumstanceWords([containment, network, place]: readonly unknown[], isAllowed: boolean): string {
  if (containment === undefined) return isAllowed ? 'while contained: ' : '';
  const words = [
    containment === 'contained' ? 'while contained' : 'with or without a sandbox',
    ...(network === 'network' ? [] : ['without a network']),
    ...(place === 'background' ? ['also in the background'] : []),
  ];
  return `${words.join(', ')}: `;
}
