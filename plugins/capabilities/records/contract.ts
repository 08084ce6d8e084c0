import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../../sdk/types.js'
import type { Dollars } from '../wallet/contract.js'

/** The id of a connection, and the agent's handle for it: `catalog`, `oauth` and other words of routes are none. */
export type CapabilityId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$'>

/** A kind that this sandbox connects. */
export type ServedKind = 'mcp' | 'cli' | 'ssh' | 'agent' | 'plugin' | 'browser' | 'identity' | 'wallet'
/** What a connection is not ready for, in one word. */
export type StatusCode =
  | 'sign-in'
  | 'rebuild'
  | 'unreachable'
  | 'unauthorized'
  | 'expired'
  | 'pairing'
  | 'missing-program'
  | 'missing-extension'
  | 'starting'
  | 'crashed'
  | 'switched-off'

/** How a connection is. */
export interface CapabilityStatus {
  state: 'active' | 'pending' | 'error' | 'inactive'
  /** Why it is not active, as a sentence. */
  detail?: string
  code?: StatusCode
  checkedAt: Millis
}
/** The fields of a connection, without its secret ones. */
export interface ShownConfig {
  [field: string]: string | number | boolean
}
/** A connection with its state. */
export interface CapabilitySummary {
  id: CapabilityId
  kind: string
  label: string
  /** The card of the catalogue it was made from. */
  card?: string
  status: CapabilityStatus
  config: ShownConfig
  /** The names of its secret fields that hold a value. */
  secrets: string[]
  /** The tools of its server that agents are offered, once they are known. */
  tools?: Count
  /** The personas that name it. */
  usedBy: string[]
}
/** Something the workspace suggests connecting. */
export interface Recommendation {
  card: string
  /** The file or remote it was read from. */
  evidence: string
  reason: string
  /** Fields that can be filled in already. */
  prefill: { [field: string]: string }
}

/**
 * A server of the Model Context Protocol: its own fields, or with `card` those of an extension's card. Secret fields:
 * `token`, `headers`, `env`, `clientSecret`.
 */
export interface McpConfig {
  /** `http` unless set. */
  transport?: 'http' | 'stdio'
  /** Of a server over HTTP, which needs it. */
  url?: string & tags.MaxLength<2000>
  /** Left out: `token` if there is one, `oauth` if the server asks for it, else `none`. */
  auth?: 'none' | 'token' | 'oauth'
  /** Sent as `authorization: Bearer`. */
  token?: string
  /** Headers of every request, `Name: value`, one a line. */
  headers?: string
  /** The client of a sign-in where the server registers none by itself. */
  clientId?: string & tags.MaxLength<500>
  clientSecret?: string
  /** The scopes of a sign-in, with blanks between them. */
  scopes?: string & tags.MaxLength<1000>
  /** The program of a server over standard input and output, which needs it. */
  command?: string & tags.MaxLength<1000>
  /** Its arguments, one a line. */
  args?: string & tags.MaxLength<10000>
  /** Its variables, `NAME=value`, one a line. */
  env?: string
  /** Its working folder in the workspace. */
  cwd?: string & tags.MaxLength<400>
  /** Only tools that match one of these patterns are offered, one a line; `*` is any text. */
  allowTools?: string & tags.MaxLength<10000>
  /** Tools that match one of these are not, whatever else allows them. */
  denyTools?: string & tags.MaxLength<10000>
  /** Which calls ask a person first: `writes` unless set, all of tools that do not say that they only read. */
  approve?: 'never' | 'writes' | 'always'
  /** How long a call may be silent, 60000 unless set; it may last 60 times as long, waiting for people aside. */
  timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1000> & tags.Maximum<600000>
  /** The card of an extension. */
  card?: string & tags.MinLength<1> & tags.MaxLength<60>
  [field: string]: string | number | undefined
}
/** A command-line tool with its credential: the fields of the card `provider`. */
export interface CliConfig {
  /** The card of the catalogue. */
  provider: string & tags.MinLength<1> & tags.MaxLength<60>
  [field: string]: string
}
/**
 * A server that the programs of turns reach with `ssh` and the id of the connection, also where the network of their
 * conversation would not reach it. Secret fields: `privateKey`, `password`.
 */
export interface SshConfig {
  /** Its name or address. */
  host: string & tags.MinLength<1> & tags.MaxLength<255>
  /** 22 unless set. */
  port?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<65535>
  user: string & tags.MinLength<1> & tags.MaxLength<64>
  /** Turns sign in with a key without holding it; a password they have in a variable. */
  auth: 'key' | 'password'
  /** In the form OpenSSH writes it, without a passphrase. */
  privateKey?: string
  password?: string
}
/**
 * An agent program that speaks the Agent Client Protocol: its own fields, or with `card` those of an extension's card.
 * Secret field: `env`.
 */
export interface AgentProgramConfig {
  /** The program and its arguments, needed without `card`: split at blanks, quotes hold words together, no shell. */
  command?: string & tags.MinLength<1> & tags.MaxLength<1000>
  /** As people know it. */
  name?: string & tags.MaxLength<80>
  /** Its variables, `NAME=value`, one a line. */
  env?: string
  /** What a person types to sign in. */
  loginCommand?: string & tags.MaxLength<1000>
  /** The card of an extension. */
  card?: string & tags.MinLength<1> & tags.MaxLength<60>
  [field: string]: string | undefined
}

/**
 * A commit of a repository with `skills/`, `agents/`, `commands/`, `hooks/` or `.mcp.json`. Nothing of it runs when it
 * is fetched. Turns get its skills and tool servers; programs that load plugins get the rest, behind the wall. Secret
 * field: `token`.
 */
export interface PluginConfig {
  /** https, ssh, http on this machine, or the path of a repository in the workspace. */
  url: string & tags.MinLength<1> & tags.MaxLength<2000>
  /** The full id of the commit. */
  ref: string & tags.Pattern<'^[0-9a-f]{40}$'>
  /** The folder of the plugin in the repository. */
  path?: string & tags.MinLength<1> & tags.MaxLength<400>
  /** Sent as access token; https only. */
  token?: string
}

/**
 * An account at a site, with a profile of a browser of its own: the fields of the card `platform`, which is `site` or
 * that of an extension. Secret fields of `site`: `password`, `otp`.
 */
export interface BrowserConfig {
  platform: string & tags.MinLength<1> & tags.MaxLength<60>
  [field: string]: string
}
/** An address that accounts are opened with. Secret fields: `password`, `otp`. */
export interface IdentityConfig {
  email: string & tags.MinLength<3> & tags.MaxLength<320>
  password?: string
  /** The seed of its one-time codes. */
  otp?: string
  /** The connection at which its mail arrives. */
  mailbox?: CapabilityId
  /** Where a person signs in. */
  loginUrl?: string & tags.MaxLength<2000>
  /** Whether agents may open accounts with it. */
  openAccounts?: 'on' | 'off'
  /** The exit through which its pages are asked. */
  exit?: CapabilityId
}

export interface McpCapability {
  id: CapabilityId
  kind: 'mcp'
  config: McpConfig
}
export interface CliCapability {
  id: CapabilityId
  kind: 'cli'
  config: CliConfig
}
export interface SshCapability {
  id: CapabilityId
  kind: 'ssh'
  config: SshConfig
}
export interface AgentCapability {
  id: CapabilityId
  kind: 'agent'
  config: AgentProgramConfig
}
export interface PluginCapability {
  id: CapabilityId
  kind: 'plugin'
  config: PluginConfig
}
export interface BrowserCapability {
  id: CapabilityId
  kind: 'browser'
  config: BrowserConfig
}
export interface IdentityCapability {
  id: CapabilityId
  kind: 'identity'
  config: IdentityConfig
}
/** A key pair that turns pay with. Only the owner makes, changes or removes it. Secret field: `key`. */
export interface WalletConfig {
  /** `eip155:` and the number of a chain, or a name such as `base`. */
  network: string & tags.MinLength<1> & tags.MaxLength<60>
  /** The endpoint of the network, over https unless it is in a private network; left out: the deployment's. */
  rpcUrl?: string & tags.MaxLength<2000>
  /** The contract of its dollars; left out: the deployment's, or USD Coin where its contract is known. */
  asset?: string & tags.Pattern<'^0x[0-9a-fA-F]{40}$'>
  /** Of the key: only read. */
  address?: string & tags.Pattern<'^0x[0-9a-fA-F]{40}$'>
  /** Left out: the one it has, for a new wallet a new one. */
  key?: string
  /** The most that one payment may be; 1 unless set. */
  perPaymentMaxUsd?: Dollars
  /** Payments below it need no yes, unless the turn has read content from outside; 0 unless set. */
  autoApproveUnderUsd?: Dollars
  /** The most that all payments of a day (UTC) may be; 5 unless set. */
  dailyCapUsd?: Dollars
  /** Hosts and addresses that are paid, one a line, such as `*.example.org`; left out: all. */
  allow?: string & tags.MaxLength<10000>
  /** Those that are not, whatever else allows them. */
  deny?: string & tags.MaxLength<10000>
}
export interface WalletCapability {
  id: CapabilityId
  kind: 'wallet'
  config: WalletConfig
}
/** The container engine of conversations. */
export interface DockerConfig {
  /** Only `off`: containers reach no device. */
  gpu?: 'on' | 'off'
  /** Asked in place of Docker Hub. */
  registryMirror?: string & tags.MaxLength<300>
  /** Registries without TLS, or with a certificate that nobody signed, one a line. */
  insecureRegistries?: string & tags.MaxLength<10000>
  /** The private network of which networks that are made get their addresses. */
  addressPool?: string & tags.MaxLength<50>
}
export interface DockerCapability {
  id: CapabilityId
  kind: 'docker'
  config: DockerConfig
}
/** A connection of a kind that this sandbox cannot connect with this call. */
export interface OtherCapability {
  id: CapabilityId
  kind:
    | 'host'
    | 'extension'
    | 'vpn'
    | 'exit'
    | 'disk'
    | 'endpoint'
    | 'localmodel'
    | 'devops'
    | 'monorepo'
    | 'service'
    | 'integration'
  config: ShownConfig
}
/** What to connect. A secret field may be `__vaulted__`: the value that is stored stays. */
export type Capability =
  | McpCapability
  | CliCapability
  | SshCapability
  | AgentCapability
  | PluginCapability
  | BrowserCapability
  | IdentityCapability
  | WalletCapability
  | DockerCapability
  | OtherCapability

/** One step of connecting, as a sentence. */
export interface ApplyLog {
  kind: 'log'
  message: string
}
/** How the connection is now. */
export interface ApplyStatus {
  kind: 'status'
  status: CapabilityStatus
}
/** It is connected and recorded. */
export interface ApplyResult {
  kind: 'result'
  ok: true
  id: CapabilityId
  status: CapabilityStatus
}
export type ApplyFrame = ApplyLog | ApplyStatus | ApplyResult

/** Everything that is connected. */
export interface CapabilityList {
  capabilities: CapabilitySummary[]
  recommendations: Recommendation[]
}

/** Connections: listed, made, changed, renamed and removed. */
export interface RecordCalls {
  /**
   * List everything that is connected with its state, and what the workspace suggests connecting.
   *
   * A state that is older than 10 s is asked for anew, for at most 2 s; one that takes longer is in the next answer.
   */
  'GET /capabilities'(): CapabilityList

  /**
   * Connect something, or change the connection of that id, and watch each step.
   *
   * It is recorded once it works; until then nothing is kept of it. Closing the stream does not stop it; removing the
   * connection does. A failure of the other side ends the stream with `error`. An agent program may take as long as it
   * shows life: the stream says what it waits for.
   *
   * - 400: the config does not fit the kind or its card
   * - 403: kinds `extension` and `wallet` by anyone but the owner
   * - 404: no such card
   * - 409: this id is being connected or changed, has another kind, or is a reserved word; or for kind `extension` the
   *   digest is not that of its powers: the message lists them, and the digest that allows them; or it is installed,
   *   and its entry is gone from the file of connections; or another key, network or asset would lose a wallet's money;
   *   or the id is that of a wallet whose entry was removed or changed by hand; or another connection is the container
   *   engine
   * - 413: a plugin or extension has more than 200 MiB or 20,000 files, or the disk is full
   * - 422: a kind that cannot be connected here, `__vaulted__` where nothing is stored, a wallet whose network has no
   *   endpoint, a container engine with `gpu`, or a commit with no plugin or extension in it, or with a link that
   *   leaves its folder
   * - 424: the repository refused, or the file of connections could not be read or written
   * - 501: a program is missing; the message says how to install it
   * - 503: a secret is given, and the store of secrets is locked
   */
  'POST /capabilities'(input: Capability): Stream<ApplyFrame>

  /**
   * Disconnect: its programs end, its secrets, files and record are removed.
   *
   * This also stops an attempt to connect it, of which nothing is kept.
   *
   * - 403: kinds `extension` and `wallet` by anyone but the owner
   * - 404: no such connection
   * - 409: it is being renamed or removed, an update of its extension is being applied, or it is a wallet that holds
   *   money
   * - 424: the file of connections could not be read or written
   * - 503: the store of secrets is locked
   */
  'DELETE /capabilities/{id}'(input: { id: CapabilityId }): Ok

  /**
   * Give a connection another id, with its secrets and everything else kept under the old one.
   *
   * - 403: kinds `extension` and `wallet` by anyone but the owner
   * - 404: no such connection
   * - 409: `to` is taken or a reserved word, or a call is using the connection
   * - 424: the file of connections could not be read or written
   * - 503: the store of secrets is locked
   */
  'POST /capabilities/{id}/rename'(input: { id: CapabilityId; to: CapabilityId }): Ok

  /**
   * Replace one secret of a connection, which is kept only if the connection works with it.
   *
   * `field` is needed where the kind has several secrets and none of them is the main one.
   *
   * - 400: no such secret field, or a value of another form
   * - 403: kinds `extension` and `wallet` by anyone but the owner
   * - 404: no such connection
   * - 409: the kind holds no secret, the connection is being changed, or another key would lose a wallet's money
   * - 424: the other side refused the new value, and the old one stays; or the file could not be written
   * - 501: a program is missing; the message says how to install it
   * - 503: the store of secrets is locked
   */
  'POST /capabilities/{id}/secret'(input: {
    id: CapabilityId
    value: string & tags.MinLength<1> & tags.MaxLength<65536>
    field?: string & tags.MinLength<1> & tags.MaxLength<60>
  }): Ok

  /**
   * Ask a connection now how it is, for at most 2 s.
   *
   * This also ends the pause of a server that crashed three times.
   *
   * - 404: no such connection
   */
  'GET /capabilities/{id}/status'(input: { id: CapabilityId }): CapabilityStatus
}
