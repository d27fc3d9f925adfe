/**
 * The rules of unattended work applied to one call. Pure: paths come resolved, and nothing is asked or run here.
 *
 * The first rule that matches decides. A rule that allows must match beyond doubt; one that denies needs less, and one that
 * asks is remembered when it may match, so that nothing behind it is more generous. Where two words differ the stricter
 * counts: between the paths of a call, and between the policies of the server and of the session.
 */
import { fallbackRuleName, type PolicyAction, type PolicyRule, type PolicyRules } from '../policy-rules.ts';
import { isInsideAny } from '../path-inside.ts';
import { type PathGlob, type Places, pathGlob } from './path-glob.ts';
import { matchesArgv, matchesWord, plainArgv } from '../plain-command.ts';
import { reasonToGuard, type ResolvedAccess, type ResolvedPath } from './mode-policy.ts';

export interface RuleVerdict {
  readonly action: PolicyAction;
  /** The name of the rule, or {@link fallbackRuleName}; with `session:` before it when a session's own policy spoke. */
  readonly rule: string;
  /** The command may run without a network only, or is given one. */
  readonly network: 'none' | 'any' | undefined;
  /** The command may run in a sandbox only; absent leaves it to the settings. */
  readonly sandbox?: 'required';
  /** How long an `ask` may wait; the session's own time when `undefined`. */
  readonly askTimeoutMs: number | undefined;
  /** What the rule's name does not say: for the person who is asked, or for the model that is refused. */
  readonly why: string | undefined;
}

export interface RulePlaces extends Places {
  /** All directories of the workspace, canonical, `cwd` among them; `cwd` alone when absent. */
  readonly roots?: readonly string[];
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories?: readonly string[];
}

export interface RuledCall {
  readonly toolName: string;
  readonly access: ResolvedAccess;
}

interface Target {
  readonly toolName: string;
  readonly access: ResolvedAccess;
  readonly path: ResolvedPath | undefined;
  readonly argv: readonly string[] | undefined;
}

/** `partly`: something of the call may be meant. */
type Match = 'no' | 'partly' | 'fully';

const directoryHint = 'The directory holds files that the rule is about: name a narrower one.';
const unknownPath = 'It cannot be known where this path leads.';
const outsidePath = 'This path lies outside the workspace.';

/** One policy, its globs made ready for one session. */
export class CompiledPolicy {
  readonly #policy: PolicyRules;
  readonly #prefix: string;
  readonly #places: RulePlaces;
  readonly #globs: readonly (readonly PathGlob[] | undefined)[];

  constructor(policy: PolicyRules, places: RulePlaces, prefix = '') {
    this.#policy = policy;
    this.#prefix = prefix;
    this.#places = places;
    this.#globs = policy.rules.map((rule) => rule.paths?.map((glob) => pathGlob(glob, places)));
  }

  /** `undefined` for a call that touches nothing and that no rule speaks of. */
  decide(call: RuledCall): RuleVerdict | undefined {
    return strictest(targetsOf(call).map((target) => this.#decideTarget(target)));
  }

  #decideTarget(target: Target): RuleVerdict | undefined {
    let floor: RuleVerdict | undefined;
    for (const [index, rule] of this.#policy.rules.entries()) {
      const globs = this.#globs[index];
      const match = matchOf(rule, globs, target, this.#places);
      if (match === 'no') continue;
      if (rule.action === 'deny') return this.#verdict('deny', rule, match === 'partly' ? hintFor(target) : undefined);
      if (match === 'fully')
        return strictest([floor, rule.action === 'ask' ? this.#verdict('ask', rule) : this.#allow(rule, globs, target)]);
      if (rule.action === 'ask') floor ??= this.#verdict('ask', rule, hintFor(target));
    }
    return strictest([floor, this.#fallback(target)]);
  }

  /** A broad word does not open what is guarded: a rule must name that file itself, else a person must. */
  #allow(rule: PolicyRule, globs: readonly PathGlob[] | undefined, target: Target): RuleVerdict {
    const guarded = this.#guardReason(target);
    const isNamed = target.path?.canonical !== undefined && globs?.some((glob) => glob.exact === target.path?.canonical) === true;
    return guarded === undefined || isNamed ? this.#verdict('allow', rule) : this.#verdict('ask', rule, guarded);
  }

  #fallback(target: Target): RuleVerdict | undefined {
    const { fallback } = this.#policy;
    const { access, path } = target;
    if (access.kind === 'none') return undefined;
    const rule = { name: fallbackRuleName, action: fallback };
    if (fallback !== 'allow' || (access.kind !== 'read' && access.kind !== 'write')) return this.#verdict(fallback, rule);
    const why = path?.canonical === undefined ? unknownPath : this.#isOutside(path.canonical) ? outsidePath : this.#guardReason(target);
    return this.#verdict(why === undefined ? 'allow' : 'ask', rule, why);
  }

  #isOutside(path: string): boolean {
    return !isInsideAny(rootsOf(this.#places), path);
  }

  #guardReason({ access, path }: Target): string | undefined {
    return (access.kind === 'read' || access.kind === 'write') && path !== undefined
      ? reasonToGuard(access.kind, path, this.#places)
      : undefined;
  }

  #verdict(action: PolicyAction, rule: PolicyRule, why?: string): RuleVerdict {
    return {
      action,
      rule: `${this.#prefix}${rule.name}`,
      network: rule.network,
      ...(rule.sandbox === undefined ? {} : { sandbox: rule.sandbox }),
      askTimeoutMs: action === 'ask' ? this.#policy.askTimeoutMs : undefined,
      why,
    };
  }
}

const ranks = { allow: 0, ask: 1, deny: 2 } as const;

/** The strictest word, the earlier one of two that are equal; limits of all that do not deny hold together. */
export function strictest(verdicts: readonly (RuleVerdict | undefined)[]): RuleVerdict | undefined {
  const spoken = verdicts.filter((verdict) => verdict !== undefined);
  const [first, ...others] = spoken;
  if (first === undefined) return undefined;
  const chosen = others.reduce((best, one) => (ranks[one.action] > ranks[best.action] ? one : best), first);
  const times = spoken.flatMap(({ askTimeoutMs }) => askTimeoutMs ?? []);
  const network = spoken.some((one) => one.network === 'none') ? 'none' : spoken.every((one) => one.network === 'any') ? 'any' : undefined;
  const sandbox = spoken.some((one) => one.sandbox === 'required') ? ({ sandbox: 'required' } as const) : {};
  return { ...chosen, ...sandbox, network, askTimeoutMs: times.length === 0 ? undefined : Math.min(...times) };
}

function targetsOf({ toolName, access }: RuledCall): Target[] {
  const whole = { toolName, access, path: undefined, argv: access.kind === 'execute' ? plainArgv(access.command) : undefined };
  if ((access.kind !== 'read' && access.kind !== 'write') || access.paths.length === 0) return [whole];
  return access.paths.map((path) => ({ ...whole, path }));
}

function hintFor({ path }: Target): string | undefined {
  return path?.isDirectory === true ? directoryHint : undefined;
}

function rootsOf({ cwd, roots = [cwd] }: RulePlaces): readonly string[] {
  return roots;
}

function matchOf(rule: PolicyRule, globs: readonly PathGlob[] | undefined, target: Target, places: RulePlaces): Match {
  const { access, argv, toolName } = target;
  if (rule.tools !== undefined && !rule.tools.some((pattern) => matchesWord(pattern, toolName))) return 'no';
  if (rule.access !== undefined && !rule.access.includes(access.kind)) return 'no';
  if (rule.providers !== undefined) {
    if (access.kind !== 'delegate' || !rule.providers.some((pattern) => matchesWord(pattern, access.provider))) return 'no';
  }
  if (rule.commands !== undefined) {
    if (argv === undefined || !rule.commands.some((pattern) => matchesArgv(pattern, argv, rule.action !== 'allow'))) return 'no';
  }
  switch (access.kind) {
    case 'read':
    case 'write':
      return globs === undefined ? matchWithoutPaths(rule, target, rootsOf(places)) : matchPath(globs, target.path);
    case 'execute': {
      const directory = { given: access.cwd, canonical: access.canonicalCwd };
      // A word about files is none about programs: these reach whatever they like.
      if (globs !== undefined) return rule.commands === undefined ? 'no' : matchPath(globs, directory);
      // The same words mean another program elsewhere: `npm test` runs what the directory's own file says.
      const isElsewhere = rule.action === 'allow' && rule.commands !== undefined && directory.canonical !== places.cwd;
      return isElsewhere ? 'no' : 'fully';
    }
    case 'delegate':
    case 'mcp':
    case 'none':
    default:
      return globs === undefined ? 'fully' : 'no';
  }
}

/** A rule that allows without a word about paths speaks of the workspace. */
function matchWithoutPaths(rule: PolicyRule, { path }: Target, roots: readonly string[]): Match {
  if (rule.action !== 'allow') return 'fully';
  return path?.canonical !== undefined && isInsideAny(roots, path.canonical) ? 'fully' : 'no';
}

function matchPath(globs: readonly PathGlob[], path: ResolvedPath | undefined): Match {
  if (path === undefined) return 'no';
  const { given, canonical, isDirectory } = path;
  if (canonical !== undefined && globs.some((glob) => (isDirectory === true ? glob.covers(canonical) : glob.matches(canonical))))
    return 'fully';
  const mayBeMeant = (glob: PathGlob): boolean =>
    canonical === undefined || !glob.isPlaced || glob.matches(given) || (isDirectory === true && glob.touches(canonical));
  return globs.some(mayBeMeant) ? 'partly' : 'no';
}
