import { SEED } from '../otp/seed.js'
import { DOCKER } from '../docker/docker-card.js'
import { WALLET } from '../wallet/wallet-card.js'
import { IDENTITY, SITE } from './site-cards.js'
import type { CardCategory, CardField, CatalogCard } from './contract.js'

/** What a card says of itself, without what is connected here. */
export interface ConnectionCard extends Pick<
  CatalogCard,
  'id' | 'name' | 'kind' | 'category' | 'description' | 'hint' | 'art' | 'logo' | 'icon' | 'guide'
> {
  readonly fields: readonly CardField[]
  readonly singleton?: true
  readonly requires?: readonly string[]
}

/** A command-line tool, as its card describes it. */
export interface CliCard extends ConnectionCard {
  readonly kind: 'cli'
  /** Its program; a card without one needs none. */
  readonly program?: string
  /** The variables of a turn, each with the field it holds; the connection's id is added to the name. */
  readonly variables: { readonly [name: string]: string }
  /** The same of an extension's card, each with a template over the fields. */
  readonly templates?: { readonly [name: string]: string }
}

const TOKEN: CardField = { key: 'token', label: 'Access token', secret: true }
const server = (key: string, label: string, placeholder: string, optional = true): CardField => ({
  key,
  label,
  placeholder,
  ...(optional && { optional }),
})

/** The cards of command-line tools. */
export const CLI_CARDS: readonly CliCard[] = [
  {
    id: 'github',
    name: 'GitHub',
    kind: 'cli',
    category: 'code',
    description: 'Issues, pull requests and releases of GitHub with a token.',
    hint: 'A fine-grained token for the repositories that the agent works on is enough.',
    fields: [{ ...TOKEN, placeholder: 'github_pat_…' }, server('host', 'Host', 'github.com')],
    program: 'gh',
    variables: { GITHUB_TOKEN: 'token', GITHUB_HOST: 'host' },
  },
  {
    id: 'gitlab',
    name: 'GitLab',
    kind: 'cli',
    category: 'code',
    description: 'Issues, merge requests and pipelines of GitLab with a token.',
    fields: [{ ...TOKEN, placeholder: 'glpat-…' }, server('host', 'Host', 'gitlab.com')],
    program: 'glab',
    variables: { GITLAB_TOKEN: 'token', GITLAB_HOST: 'host' },
  },
  {
    id: 'forgejo',
    name: 'Forgejo',
    kind: 'cli',
    category: 'code',
    description: 'A Forgejo server, such as Codeberg, with a token.',
    fields: [server('url', 'Address', 'https://codeberg.org', false), TOKEN],
    variables: { FORGEJO_TOKEN: 'token', FORGEJO_URL: 'url' },
  },
  {
    id: 'gitea',
    name: 'Gitea',
    kind: 'cli',
    category: 'code',
    description: 'A Gitea server with a token.',
    fields: [server('url', 'Address', 'https://gitea.example.org', false), TOKEN],
    program: 'tea',
    variables: { GITEA_TOKEN: 'token', GITEA_URL: 'url' },
  },
  {
    id: 'token',
    name: 'Token',
    kind: 'cli',
    category: 'other',
    description: 'A credential of any service, which programs find in a variable.',
    fields: [
      { key: 'name', label: 'Variable', placeholder: 'API_TOKEN', hint: 'The id of the connection is added to it.' },
      { key: 'token', label: 'Value', secret: true },
      {
        ...server('url', 'Address', 'https://api.example.org'),
        hint: 'Programs find it in the same variable with _URL.',
      },
    ],
    variables: {},
  },
  {
    id: 'otp',
    name: 'One-time codes',
    kind: 'cli',
    category: 'other',
    description: 'The second factor of an account: the sandbox answers its codes, and never shows the seed.',
    fields: [
      { key: 'account', label: 'Account', placeholder: 'ada@example.org', optional: true },
      { key: SEED, label: 'Seed', placeholder: 'base32, or otpauth://totp/…', secret: true },
    ],
    variables: {},
  },
]

const OTHER_CARDS: readonly ConnectionCard[] = [
  {
    id: 'mcp',
    name: 'MCP server',
    kind: 'mcp',
    category: 'tools',
    description: 'Tools of a server of the Model Context Protocol, at an address or as a program.',
    fields: [
      {
        key: 'transport',
        label: 'Reached over',
        optional: true,
        options: [
          { value: 'http', label: 'HTTP' },
          { value: 'stdio', label: 'A program of this machine' },
        ],
      },
      server('url', 'Address', 'https://mcp.example.org/mcp'),
      { key: 'token', label: 'Token', secret: true, optional: true },
      { key: 'headers', label: 'Headers', placeholder: 'Name: value', secret: true, optional: true, multiline: true },
      server('command', 'Program', 'npx'),
      { key: 'args', label: 'Arguments, one a line', optional: true, multiline: true },
      { key: 'env', label: 'Variables', placeholder: 'NAME=value', secret: true, optional: true, multiline: true },
      { key: 'allowTools', label: 'Only these tools', placeholder: 'read_*', optional: true, multiline: true },
      { key: 'denyTools', label: 'Not these tools', placeholder: 'delete_*', optional: true, multiline: true },
    ],
  },
  {
    id: 'ssh',
    name: 'Server over SSH',
    kind: 'ssh',
    category: 'servers',
    description: 'A server on which agents run commands with ssh, by the name of the connection.',
    hint: 'Make a key for this purpose: agents sign in with it, and never hold it. A password they can read.',
    fields: [
      server('host', 'Host', 'build.example.org', false),
      server('port', 'Port', '22'),
      { key: 'user', label: 'User', placeholder: 'deploy' },
      {
        key: 'auth',
        label: 'Sign in with',
        options: [
          { value: 'key', label: 'A key' },
          { value: 'password', label: 'A password' },
        ],
      },
      { key: 'privateKey', label: 'Private key', secret: true, optional: true, multiline: true },
      { key: 'password', label: 'Password', secret: true, optional: true },
    ],
  },
  {
    id: 'agent',
    name: 'Agent program',
    kind: 'agent',
    category: 'agents',
    description: 'A program that speaks the Agent Client Protocol, which turns can run on.',
    fields: [
      { key: 'command', label: 'Command', placeholder: 'opencode acp' },
      { key: 'name', label: 'Name', optional: true },
      { key: 'env', label: 'Variables', placeholder: 'NAME=value', secret: true, optional: true, multiline: true },
      { key: 'loginCommand', label: 'Sign-in command', placeholder: 'opencode auth login', optional: true },
    ],
  },
  {
    id: 'plugin',
    name: 'Agent plugin',
    kind: 'plugin',
    category: 'agents',
    description: 'A repository at one commit with skills, tool servers, agents, commands and hooks for turns.',
    hint: 'Read it at that commit before you connect it: its tool servers and hooks run behind the wall of turns.',
    fields: [
      server('url', 'Repository', 'https://git.example.org/team/plugin.git', false),
      { key: 'ref', label: 'Commit', placeholder: '40 hexadecimal digits' },
      server('path', 'Folder in it', 'plugins/review'),
      { ...TOKEN, optional: true },
    ],
  },
]

/** Every card of this group, in the order of the catalogue. */
export const OWN_CARDS: readonly (ConnectionCard | CliCard)[] = [
  ...CLI_CARDS,
  ...OTHER_CARDS,
  DOCKER,
  SITE,
  IDENTITY,
  WALLET,
]

/** The groups of cards. */
export const CATEGORIES: readonly CardCategory[] = [
  { id: 'code', label: 'Code', hint: 'Where repositories, issues and pipelines are.' },
  { id: 'tools', label: 'Tools', hint: 'What agents can call beside their own tools.' },
  { id: 'servers', label: 'Servers', hint: 'Machines on which agents run commands.' },
  { id: 'accounts', label: 'Accounts', hint: 'Where agents are signed in, and what they sign in with.' },
  { id: 'agents', label: 'Agents', hint: 'Programs that turns can run on.' },
  { id: 'other', label: 'Other', hint: 'Credentials of any service.' },
]
