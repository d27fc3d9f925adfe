/** One rule of a policy. Members that cannot go together are refused: such a rule would never match, in silence. */
import { fallbackRuleName, type PolicyRule, policyAccessKinds, policyActions } from '../../../shared/policy-rules.ts';
import { globFault } from './check-glob.ts';
import { checkKeys, listOf, member, oneOf, type Place, shortText } from './check-member.ts';
import { policyFault } from './policy-fault.ts';

const ruleKeys = ['name', 'action', 'tools', 'access', 'paths', 'commands', 'providers', 'network', 'sandbox'] as const;
const longestName = 100;
const longestWord = 200;
const mostWords = 64;

type RuleTable = Partial<Record<(typeof ruleKeys)[number], unknown>>;

/** `index` counts from 0. @throws ServerError CONFIG_INVALID */
export function parseRule(table: Record<string, unknown>, index: number, at: Place): PolicyRule {
  checkKeys(table, ruleKeys, at);
  const { name, action, tools, access, paths, commands, providers, network, sandbox }: RuleTable = table;
  const rule: PolicyRule = {
    name: name === undefined ? `rule ${index + 1}` : ruleName(name, member(at, 'name')),
    action: oneOf(action, policyActions, member(at, 'action')),
    ...(tools === undefined ? {} : { tools: listOf(tools, 'tool names', member(at, 'tools'), pattern('a tool name')) }),
    ...(access === undefined ? {} : { access: listOf(access, 'kinds of access', member(at, 'access'), accessKind) }),
    ...(paths === undefined ? {} : { paths: listOf(paths, 'globs', member(at, 'paths'), glob) }),
    ...(commands === undefined ? {} : { commands: listOf(commands, 'commands', member(at, 'commands'), command) }),
    ...(providers === undefined ? {} : { providers: listOf(providers, 'providers', member(at, 'providers'), pattern('a provider')) }),
    ...(network === undefined ? {} : { network: oneOf(network, ['any', 'none'], member(at, 'network')) }),
    ...(sandbox === undefined ? {} : { sandbox: oneOf(sandbox, ['required'], member(at, 'sandbox')) }),
  };
  refuseContradictions(rule, at);
  return rule;
}

function ruleName(value: unknown, at: Place): string {
  const name = shortText(value, 'a name', longestName, at);
  if (name === fallbackRuleName) throw policyFault({ ...at, expected: 'another name: this one stands for no rule at all', came: value });
  return name;
}

function pattern(what: string): (value: unknown, at: Place) => string {
  return (value, at) => shortText(value, what, longestWord, at);
}

function accessKind(value: unknown, at: Place) {
  return oneOf(value, policyAccessKinds, at);
}

function glob(value: unknown, at: Place): string {
  const fault = typeof value === 'string' ? globFault(value) : 'a glob';
  if (typeof value === 'string' && fault === undefined) return value;
  throw policyFault({ ...at, expected: fault ?? 'a glob', came: value });
}

function command(value: unknown, at: Place): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > mostWords) {
    throw policyFault({ ...at, expected: `a command as a list of 1 to ${mostWords} words, such as ["npm", "test"]`, came: value });
  }
  return value.map((entry: unknown, index) => {
    const here = member(at, index);
    const word = shortText(entry, 'a word', longestWord, here);
    if (word === '...' && index === 0) throw policyFault({ ...here, expected: 'the program of the command first', came: entry });
    if (word === '...' && index < value.length - 1) throw policyFault({ ...here, expected: '... as the last word only', came: entry });
    return word;
  });
}

function refuseContradictions(rule: PolicyRule, at: Place): void {
  const { access, commands, providers, paths, network, sandbox } = rule;
  const lacks = (kind: (typeof policyAccessKinds)[number]): boolean => access !== undefined && !access.includes(kind);
  const fault = (key: keyof PolicyRule, expected: string): Error => policyFault({ ...member(at, key), expected, came: rule[key] });
  if (commands !== undefined && lacks('execute')) throw fault('access', 'execute among them, as the rule names commands');
  if (providers !== undefined && lacks('delegate')) throw fault('access', 'delegate among them, as the rule names providers');
  if (commands !== undefined && providers !== undefined) throw fault('providers', 'no providers, as the rule names commands');
  const isAboutFiles = access === undefined || access.includes('read') || access.includes('write');
  if (paths !== undefined && commands === undefined && !isAboutFiles) throw fault('paths', 'no paths, as the rule is about no files');
  if (providers !== undefined && paths !== undefined) throw fault('paths', 'no paths, as the rule names providers');
  if (network !== undefined && rule.action === 'deny') throw fault('network', 'no network, as the rule denies');
  if (sandbox !== undefined && rule.action === 'deny') throw fault('sandbox', 'no sandbox, as the rule denies');
  if (sandbox !== undefined && lacks('execute')) throw fault('access', 'execute among them, as the rule sets sandbox');
  if (network !== undefined && lacks('execute')) throw fault('access', 'execute among them, as the rule sets network');
}
