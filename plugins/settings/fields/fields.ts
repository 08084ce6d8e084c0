import { isDeepStrictEqual } from 'node:util'
import type { SettingKey, Settings } from '../contract.js'
import { DEFAULTS } from '../current-settings.js'
import type { SettingField } from './contract.js'

type Field = Omit<SettingField, 'key' | 'default' | 'changed'>

/** Every setting that has an effect: one that is left out does not compile. */
const FIELDS: { readonly [key in SettingKey]: Field } = {
  stableSystemPrompt: {
    type: 'boolean',
    title: 'Same instructions in every turn',
    description:
      'Date, branch and repositories are told before each message in place of in the instructions, so that a '
      + 'provider’s cache of the instructions holds.',
    applies: 'next-turn',
  },
  terseOutput: {
    type: 'boolean',
    title: 'Ask for short answers',
    description: 'Each turn asks the agent to say only what counts.',
    applies: 'next-turn',
  },
  terseHoldout: {
    type: 'number',
    title: 'Turns that are not asked',
    description: 'The share of turns without that request, to measure what it saves: 0.2 is one of five.',
    ...{ min: 0, max: 1, applies: 'next-turn' },
  },
  iqSearch: {
    type: 'boolean',
    title: 'Teach the search tool',
    description: 'Each conversation of the sandbox’s own loop begins with how to search its files.',
    applies: 'next-conversation',
  },
  iqSearchHoldout: {
    type: 'number',
    title: 'Conversations that are not taught',
    description: 'The share of conversations without it, to measure how many searches it saves.',
    ...{ min: 0, max: 1, applies: 'next-conversation' },
  },
  workspaceMap: {
    type: 'boolean',
    title: 'Begin with a map',
    description: 'Each conversation begins with the repositories and two levels of folders, at most 6,000 characters.',
    applies: 'next-conversation',
  },
  outputCleaners: {
    type: 'string',
    title: 'Shorten the output of commands',
    description:
      'What is left out before the model reads it: off, nothing for all cleaners, a,b for these, -a,-b for all but '
      + 'these. Lines that tell of errors stay, and the whole output stays in a file that the agent can read.',
    ...{ min: 0, max: 200, applies: 'next-turn' },
  },
  draftLandedMessages: {
    type: 'boolean',
    title: 'Draft messages of commits',
    description:
      'After a landing a model of small jobs drafts the message of its commit from the patch; where none is named, the '
      + 'model that did the work, and none of another provider.',
    applies: 'now',
  },
  changelogRepos: {
    type: 'list',
    title: 'Repositories with a changelog',
    description:
      'root or their paths. The message that is drafted after a landing there also has a note for the changelog, and '
      + 'says what the change breaks.',
    ...{ min: 0, max: 50, applies: 'now' },
  },
  outputHoldout: {
    type: 'number',
    title: 'Commands that are not shortened',
    description: 'The share of commands whose output stays as it is, to measure what shortening saves.',
    ...{ min: 0, max: 1, applies: 'next-turn' },
  },
  agentRetentionDays: {
    type: 'number',
    title: 'Archive finished conversations',
    description: 'Days without activity after which a finished conversation is archived; 0: never.',
    ...{ min: 0, max: 365, applies: 'now' },
  },
  systemPromptMode: {
    type: 'enum',
    title: 'Instructions',
    description:
      'What every turn starts from, unless its persona brings a prompt. core: the sandbox’s own text. vendor: what an '
      + 'agent program brings; elsewhere core. custom: the text below, which agent programs get beside their own.',
    ...{ values: ['core', 'vendor', 'custom'], applies: 'next-turn' },
  },
  systemPrompt: {
    type: 'string',
    title: 'Custom instructions',
    description: 'The text of the mode custom; empty: that of core.',
    ...{ min: 0, max: 20_000, applies: 'next-turn' },
  },
  hashlineEdits: {
    type: 'boolean',
    title: 'Edit lines by their hashes',
    description: 'Agents name lines by number and hash, so that an edit of a file that changed meanwhile is refused.',
    applies: 'next-turn',
  },
  skills: {
    type: 'list',
    title: 'Skills switched on',
    description: 'The skills that turns are offered, by name.',
    ...{ min: 0, max: 200, applies: 'next-turn' },
  },
  quickModel: {
    type: 'list',
    title: 'Models of small jobs',
    description:
      'Tried in order for verdicts, drafted messages and titles: provider:model. Empty: what is connected, the '
      + 'cheapest first, and no titles.',
    ...{ min: 0, max: 10, applies: 'now' },
  },
  agentRunModels: {
    type: 'list',
    title: 'Models of runs that start by themselves',
    description:
      'Tried in order for new conversations of automations, loops and other automatic runs that name no model: '
      + 'provider:model. Empty: what any message without a model runs on.',
    ...{ min: 0, max: 10, applies: 'next-conversation' },
  },
  agentRunEffort: {
    type: 'string',
    title: 'Effort of these runs',
    description: 'Such as low, medium or high; empty: the model’s usual one.',
    ...{ min: 0, max: 40, applies: 'next-conversation' },
  },
  autoTier: {
    type: 'enum',
    title: 'Easy turns on a cheaper model',
    description:
      'shadow: turns are judged and recorded, and run on the chosen model. on: easy turns run on the first usable '
      + 'model of the list below. off: none is judged. Judging asks a model of small jobs one short question a turn.',
    ...{ values: ['off', 'shadow', 'on'], applies: 'next-turn' },
  },
  autoTierEagerness: {
    type: 'enum',
    title: 'What counts as easy',
    description: 'The difficulty, 0 to 1, below which a turn is easy. cautious: 0.2. balanced: 0.35. eager: 0.5.',
    ...{ values: ['cautious', 'balanced', 'eager'], applies: 'next-turn' },
  },
  autoFastModels: {
    type: 'list',
    title: 'Cheaper models for easy turns',
    description:
      'Tried in order: provider:model. Only those of the provider of a turn count; a turn whose provider has none is '
      + 'not judged.',
    ...{ min: 0, max: 10, applies: 'next-turn' },
  },
  searchModel: {
    type: 'string',
    title: 'Embedding model of search',
    description:
      'provider:model, such as endpoint/home:nomic-embed-text. What leaves for it: every part of 40 lines of the files '
      + 'that search reads, with its path, and each question in words; not files named as secrets, and no stored '
      + 'value. Where it fails, and while this is empty, search ranks by what is learned here, and nothing leaves.',
    ...{ min: 0, max: 200, applies: 'now' },
  },
  rules: {
    type: 'list',
    title: 'Rules',
    description:
      'Checks, instructions and verdicts at the end of a turn, before a push, and when work may land. Their order '
      + 'counts. Only rules that were saved through a call are in force.',
    ...{ min: 0, max: 50, applies: 'now' },
  },
  autoResumeOnRestart: {
    type: 'boolean',
    title: 'Resume after a restart',
    description: 'Turns that a restart of the sandbox interrupted go on by themselves.',
    applies: 'now',
  },
  resumeAfterOutage: {
    type: 'boolean',
    title: 'Resume after an outage',
    description: 'A turn that failed because its provider was down is run again once the provider may be back.',
    applies: 'now',
  },
  subagentsAtOnce: {
    type: 'number',
    title: 'Subagents at once',
    description: 'Subagents of one turn that may run at the same time.',
    ...{ min: 1, max: 200, applies: 'next-turn' },
  },
  subagentsPerTurn: {
    type: 'number',
    title: 'Subagents of a turn',
    description: 'Subagents that one turn may start in all.',
    ...{ min: 1, max: 2000, applies: 'next-turn' },
  },
  subagentDepth: {
    type: 'number',
    title: 'Depth of subagents',
    description: 'How deep subagents may start subagents.',
    ...{ min: 1, max: 10, applies: 'next-turn' },
  },
  network: {
    type: 'enum',
    title: 'Network of a conversation',
    description: 'own: a network of its own, connected through the sandbox. shared: the network of this machine.',
    ...{ values: ['own', 'shared'], applies: 'next-turn' },
  },
  networkAllow: {
    type: 'list',
    title: 'Also reachable',
    description:
      'What conversations reach beside public addresses: host[:port]. localhost:5432 is a port of this machine. Counts '
      + 'for the next connection.',
    ...{ min: 0, max: 200, applies: 'now' },
  },
  networkOnly: {
    type: 'boolean',
    title: 'Reach nothing else',
    description: 'Conversations reach only what is listed above. Counts for the next connection.',
    applies: 'now',
  },
  admission: {
    type: 'object',
    title: 'What may start by itself',
    description:
      'For schedule, event (webhooks), listener (messages through extensions), webchat (messages of visitors) and '
      + 'workspace: allow, hold (wait for a person) or deny. For workflow (gates of workflows): allow or deny.',
    applies: 'now',
  },
  automationFailureLimit: {
    type: 'number',
    title: 'Switch off after failures',
    description: 'An automation that failed so many times in a row is switched off; 0: never.',
    ...{ min: 0, max: 20, applies: 'now' },
  },
  commandRules: {
    type: 'object',
    title: 'Commands of agents',
    description:
      'Whether agents may run commands of a class (git.destructive, secrets.access, …): allow, hold or deny.',
    applies: 'now',
  },
  actionRules: {
    type: 'object',
    title: 'Sends and posts of agents',
    description: 'Whether agents may send or post, by provider and type (chat.*): allow, hold or deny.',
    applies: 'now',
  },
}

/** Every setting, and whether its value is the default. */
export const settingFields = (settings: Settings): SettingField[] =>
  (Object.keys(FIELDS) as SettingKey[]).map(key => ({
    key,
    ...FIELDS[key],
    default: structuredClone(DEFAULTS[key]),
    changed: !isDeepStrictEqual(settings[key], DEFAULTS[key]),
  }))
