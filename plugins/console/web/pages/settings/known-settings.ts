import type { Settings, SettingKey } from '../../../../settings/contract.js'

/** How a setting is entered. */
export type SettingInput =
  | { readonly kind: 'switch' }
  | { readonly kind: 'number'; readonly min: number; readonly max: number; readonly unit: string }
  | { readonly kind: 'choice'; readonly choices: readonly (readonly [value: string, label: string])[] }
  | { readonly kind: 'lines'; readonly placeholder: string }
  /** Lines of a name and its value. */
  | { readonly kind: 'pairs'; readonly placeholder: string }

/** A setting as people read it. */
export interface KnownSetting {
  readonly section:
    | 'Conversations'
    | 'Tools'
    | 'After a failure'
    | 'Subagents'
    | 'Skills'
    | 'Network'
    | 'Automations'
    | 'Safety'
  readonly label: string
  /** Its effect, and when it applies. */
  readonly about: string
  readonly input: SettingInput
  /** The default. */
  readonly usual: string | number | boolean | readonly string[] | { readonly [name: string]: string }
}

/** Every setting that the contract has: a new one does not compile until it is here. */
export const KNOWN_SETTINGS: { readonly [key in SettingKey]: KnownSetting } = {
  agentRetentionDays: {
    section: 'Conversations',
    label: 'Archive finished conversations',
    about: 'After so many days without activity; 0: never.',
    input: { kind: 'number', min: 0, max: 365, unit: 'days' },
    usual: 3,
  },
  hashlineEdits: {
    section: 'Tools',
    label: 'Edit lines by their hashes',
    about: 'Agents name lines by number and hash, so that an edit of a file that changed meanwhile is refused.',
    input: { kind: 'switch' },
    usual: false,
  },
  autoResumeOnRestart: {
    section: 'After a failure',
    label: 'Resume after a restart',
    about: 'Turns that a restart of the sandbox interrupted go on by themselves.',
    input: { kind: 'switch' },
    usual: false,
  },
  resumeAfterOutage: {
    section: 'After a failure',
    label: 'Resume after an outage',
    about: 'A turn that failed because its provider was down is run again once the provider may be back.',
    input: { kind: 'switch' },
    usual: false,
  },
  subagentsAtOnce: {
    section: 'Subagents',
    label: 'At once',
    about: 'Subagents of one turn that may run at the same time.',
    input: { kind: 'number', min: 1, max: 200, unit: 'subagents' },
    usual: 20,
  },
  subagentsPerTurn: {
    section: 'Subagents',
    label: 'In all',
    about: 'Subagents that one turn may start.',
    input: { kind: 'number', min: 1, max: 2000, unit: 'subagents' },
    usual: 200,
  },
  subagentDepth: {
    section: 'Subagents',
    label: 'Depth',
    about: 'How deep subagents may start subagents.',
    input: { kind: 'number', min: 1, max: 10, unit: 'levels' },
    usual: 3,
  },
  skills: {
    section: 'Skills',
    label: 'Switched on',
    about: 'The skills that turns are offered, one name a line, from the next turn on.',
    input: { kind: 'lines', placeholder: 'a-skill' },
    usual: [],
  },
  network: {
    section: 'Network',
    label: 'Network of a conversation',
    about: 'Used from the next turn on.',
    input: {
      kind: 'choice',
      choices: [
        ['own', 'A network of its own, connected through the sandbox'],
        ['shared', 'The network of this machine'],
      ],
    },
    usual: 'own',
  },
  networkAllow: {
    section: 'Network',
    label: 'Also reachable',
    about:
      'What conversations reach beside public addresses, one host[:port] a line, from the next connection on. '
      + 'localhost:5432 is a port of this machine.',
    input: { kind: 'lines', placeholder: '*.internal.example:443' },
    usual: [],
  },
  commandRules: {
    section: 'Safety',
    label: 'Commands',
    about: 'Whether agents may run commands of a class (git.destructive, secrets.access, …): allow, hold or deny.',
    input: { kind: 'pairs', placeholder: 'git.destructive: deny' },
    usual: {},
  },
  actionRules: {
    section: 'Safety',
    label: 'Sends and posts',
    about: 'Whether agents may send or post, by provider and type: allow, hold or deny.',
    input: { kind: 'pairs', placeholder: 'chat.*: hold' },
    usual: {},
  },
  networkOnly: {
    section: 'Network',
    label: 'Reach nothing else',
    about: 'Conversations reach only what is listed above, from the next connection on.',
    input: { kind: 'switch' },
    usual: false,
  },
  admission: {
    section: 'Automations',
    label: 'What may start by itself',
    about:
      'One line each for schedule, event (webhooks), listener (messages through extensions), workspace: allow, hold '
      + '(wait for a person) or deny. And for workflow (gates): allow or deny.',
    input: { kind: 'pairs', placeholder: 'event: hold' },
    usual: { schedule: 'allow', event: 'allow', listener: 'allow', workspace: 'allow', workflow: 'allow' },
  },
  automationFailureLimit: {
    section: 'Automations',
    label: 'Switch off after failures',
    about: 'An automation that failed so many times in a row is switched off; 0: never.',
    input: { kind: 'number', min: 0, max: 20, unit: 'failures' },
    usual: 0,
  },
}

/** A value as it is edited. */
export const settingText = (value: Settings[SettingKey]): string =>
  Array.isArray(value)
    ? value.join('\n')
    : typeof value === 'object'
      ? Object.entries(value)
          .map(([name, verdict]) => `${name}: ${verdict}`)
          .join('\n')
      : String(value)

/** The value of an edited text. */
export const settingValue = (
  input: SettingInput,
  text: string,
): boolean | number | string | string[] | { [name: string]: string } => {
  switch (input.kind) {
    case 'switch':
      return text === 'true'
    case 'number':
      return Number(text)
    case 'choice':
      return text
    case 'lines':
      return linesIn(text)
    case 'pairs':
      return Object.fromEntries(
        linesIn(text).map(line => {
          const [name = '', value = ''] = line.split(':', 2)
          return [name.trim(), value.trim()]
        }),
      )
  }
}

const linesIn = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
