import type { tags } from 'typia'
import type { OfferedTemplate } from '../../../sdk/node/extension/protocol.js'

/** A short name in lower case. */
export type ExtensionSlug = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
/** A path inside the extension's folder, with forward slashes. */
export type ExtensionPath = string & tags.MinLength<1> & tags.MaxLength<400>
/** A range of versions, as Node's package manager reads them. */
export type VersionRange = string & tags.MinLength<1> & tags.MaxLength<100>
/** A condition over context keys and form values: `==`, `!=`, `in [..]`, `&&`, `||`, `!`, parentheses. */
export type ExtensionCondition = string & tags.MinLength<1> & tags.MaxLength<300>
/** A name that people read: 1 to 60 characters. */
type Label = string & tags.MinLength<1> & tags.MaxLength<60>
/** A short sign, such as an emoji or the name of a key: at most 100 characters. */
type Mark = string & tags.MaxLength<100>

/** The file `intentic-extension.json` in an extension's root. Every part is optional. */
export interface ExtensionManifest {
  $schema?: string
  /** Who publishes it; `local` when absent. */
  publisher?: ExtensionSlug
  /** Its name; the folder's name when absent. */
  name?: ExtensionSlug
  /** Semantic version, for display and identity only; `0.0.0` when absent. */
  version?: string & tags.MaxLength<100>
  category?: string & tags.MinLength<1> & tags.MaxLength<40>
  /** A whole SVG document; always drawn inert. */
  art?: string & tags.MaxLength<4096>
  logo?: Mark
  icon?: string & tags.MaxLength<60>
  /** The range of host API versions it runs on, under one key. */
  engines?: { [host: string]: VersionRange }
  /** A prebuilt single-file ES module for the browser that exports `activate()`. */
  entry?: ExtensionPath
  /** A prebuilt single-file ES module for Node that exports `activate(host)`. */
  server?: ExtensionPath
  permissions?: ExtensionPermissions
  contributes?: ExtensionContributions
}

/** One permission, as `PERMISSIONS.md` describes them: at most 400 characters. */
type EntryText = string & tags.MinLength<1> & tags.MaxLength<400>

/** What the halves of an extension may reach. */
export interface ExtensionPermissions {
  /** Routes that the browser half may call, and what the server half may reach of the machine. */
  sandbox?: EntryText[] & tags.MaxItems<100>
  /** Routes that the server half and the processes may call. */
  daemon?: EntryText[] & tags.MaxItems<100>
}

/** What an extension adds to the sandbox. */
export interface ExtensionContributions {
  views?: ExtensionView[] & tags.MaxItems<20>
  sideViews?: ExtensionSideView[] & tags.MaxItems<20>
  files?: ExtensionFiles[] & tags.MaxItems<50>
  viewers?: ExtensionViewer[] & tags.MaxItems<20>
  documents?: ExtensionDocument[] & tags.MaxItems<20>
  commands?: ExtensionCommand[] & tags.MaxItems<100>
  settings?: ExtensionSetting[] & tags.MaxItems<100>
  processes?: ExtensionProcess[] & tags.MaxItems<20>
  agent?: ExtensionAgentFolder
  environment?: ExtensionEnvironment
  capabilities?: ExtensionCard[] & tags.MaxItems<50>
  listener?: ExtensionListener
  automationTemplates?: ExtensionTemplate[] & tags.MaxItems<50>
  /** A folder of executables put at the end of the agent's PATH. */
  bin?: ExtensionPath
  tools?: ExtensionTool[] & tags.MaxItems<50>
}

/** A page, a panel of a repository, or a tab about the sandbox. */
export interface ExtensionView {
  id: ExtensionSlug
  label: Label
  surface: 'rail' | 'directory' | 'sandbox'
  /** It may show a count elsewhere. */
  badge?: boolean
}

/** A panel next to something that is open. */
export interface ExtensionSideView {
  id: ExtensionSlug
  label: Label
  beside: 'conversation' | 'file' | 'changes' | 'run'
  when?: ExtensionCondition
  badge?: boolean
}

/** Workspace paths whose change makes data of its views stale. */
export interface ExtensionFiles {
  path: string & tags.MinLength<1> & tags.MaxLength<300>
  invalidates: string[] & tags.MinItems<1> & tags.MaxItems<20>
}

/** File formats that it draws. */
export interface ExtensionViewer {
  id: ExtensionSlug
  extensions: (string & tags.MaxLength<40> & tags.Pattern<'^[a-z0-9]+$'>)[] & tags.MinItems<1> & tags.MaxItems<50>
  fetch: 'text' | 'blob' | 'url'
}

/** Files that are not text, of which its backend derives a text with `host.documents.handle`. */
export interface ExtensionDocument {
  id: ExtensionSlug
  label: Label
  /** The endings of their names; without them it derives nothing. */
  extensions?: (string & tags.MaxLength<40> & tags.Pattern<'^[a-z0-9]+$'>)[] & tags.MinItems<1> & tags.MaxItems<50>
}

/** A command of the console. */
export interface ExtensionCommand {
  command: string & tags.MaxLength<200> & tags.Pattern<'^[a-z0-9][a-z0-9-]*([.][a-z0-9][a-z0-9-]*)+$'>
  title: string & tags.MinLength<1> & tags.MaxLength<80>
  icon?: Mark
  keybinding?: string & tags.Pattern<'^\\S{1,40}$'>
  when?: ExtensionCondition
}

/** A setting that people fill in. */
export interface ExtensionSetting {
  key: string & tags.Pattern<'^[a-z0-9][a-zA-Z0-9-]{0,59}$'>
  type: 'boolean' | 'string' | 'number' | 'enum'
  title: string & tags.MinLength<1> & tags.MaxLength<80>
  description?: string & tags.MaxLength<500>
  default?: string | number | boolean
  enum?: string[] & tags.MaxItems<100>
  /** Kept in the store of secrets; type string only. */
  secret?: boolean
  /** Put into the agent's shell under this name. */
  env?: string & tags.Pattern<'^[A-Z][A-Z0-9_]{0,99}$'>
}

/** A long-lived program that the daemon runs. */
export interface ExtensionProcess {
  name: ExtensionSlug
  command: string & tags.MinLength<1> & tags.MaxLength<1000>
  cwd?: ExtensionPath
  port?: 'auto'
  preview?: boolean
  autoStart?: boolean
  /** `on-failure` when absent. */
  restart?: 'never' | 'on-failure' | 'always'
  /**
   * Stored keys, placed as files in the folder that SANDBOX_SECRETS_DIR names. With entries `connection:<card>` it also
   * has the secret fields of their connections, as `<id>/<field>`.
   */
  secrets?: (string & tags.Pattern<'^[A-Za-z_][A-Za-z0-9_]{0,127}$'>)[] & tags.MaxItems<20>
}

/** The folder that is an agent plugin too: skills, agents, commands, hooks. */
export interface ExtensionAgentFolder {
  path?: ExtensionPath
}

/** Lines for the image of the sandbox. */
export interface ExtensionEnvironment {
  fragment: ExtensionPath
}

/** A connection card, as data. */
export interface ExtensionCard {
  id: ExtensionSlug
  catalog: ExtensionCardText
  fields: ExtensionCardField[] & tags.MaxItems<40>
  /** How its connections are served. */
  kind: 'cli' | 'browser' | 'host' | 'agent' | 'mcp'
  env?: { [variable: string]: string & tags.MaxLength<1000> }
  skill?: ExtensionPath
  fragment?: ExtensionPath
  loginUrl?: string & tags.MaxLength<2000>
  homeUrl?: string & tags.MaxLength<2000>
  mcp?: ExtensionCardServer
}

/** The texts of a card. */
export interface ExtensionCardText {
  name: Label
  art?: string & tags.MaxLength<4096>
  logo?: Mark
  icon?: Mark
  description: string & tags.MinLength<1> & tags.MaxLength<160>
  category: string & tags.MinLength<1> & tags.MaxLength<40>
  hint?: string & tags.MaxLength<2000>
  guide?: ExtensionCardGuide
}

/** Where a person gets the values that a card requests. */
export interface ExtensionCardGuide {
  url?: string & tags.MaxLength<2000>
  urlFromField?: string & tags.MaxLength<60>
  path?: string & tags.MaxLength<400>
  linkLabel?: string & tags.MaxLength<60>
  scopes?: string & tags.MaxLength<400>
  steps?: (string & tags.MaxLength<500>)[] & tags.MaxItems<20>
}

/** One field of a card. */
export interface ExtensionCardField {
  key: string & tags.Pattern<'^[a-zA-Z][a-zA-Z0-9]{0,39}$'>
  label: Label
  placeholder?: string & tags.MaxLength<200>
  secret?: boolean
  optional?: boolean
  multiline?: boolean
  boolean?: boolean
  hint?: string & tags.MaxLength<500>
  rebuild?: boolean
  default?: string & tags.MaxLength<1000>
  options?: ExtensionCardOption[] & tags.MaxItems<100>
  when?: ExtensionCondition
  value?: string & tags.MaxLength<1000>
  totp?: boolean
}

/** One choice of a card's field. */
export interface ExtensionCardOption {
  value: string & tags.MaxLength<200>
  label: string & tags.MaxLength<100>
}

/** The server of a card of kind `mcp`: templates over its fields. */
export interface ExtensionCardServer {
  transport: 'http' | 'stdio'
  url?: string & tags.MaxLength<2000>
  command?: string & tags.MaxLength<1000>
  args?: string & tags.MaxLength<2000>
}

/** A source of messages from outside. */
export interface ExtensionListener {
  provider: ExtensionSlug
  events: ExtensionListenerEvent[] & tags.MinItems<1> & tags.MaxItems<50>
  automation: ExtensionListenerForm
}

/** One kind of message. */
export interface ExtensionListenerEvent {
  type: string & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9_]*$'>
  label: Label
}

/** The fields in the form of an automation. */
export interface ExtensionListenerForm {
  label: Label
  mentionLabel?: string & tags.MaxLength<60>
  channel: ExtensionFormField
  branchField?: ExtensionFormField
  starterPrompt: string & tags.MinLength<1> & tags.MaxLength<4000>
}

/** One field of a form. */
export interface ExtensionFormField {
  label: Label
  placeholder: string & tags.MinLength<1> & tags.MaxLength<100>
  hint?: string & tags.MinLength<1> & tags.MaxLength<300>
}

/** A ready-made automation. */
export interface ExtensionTemplate extends OfferedTemplate {
  logo?: Mark
  icon?: Mark
}

/** A tool of the agent, served by the backend. */
export interface ExtensionTool {
  name: ExtensionSlug
  title: string & tags.MinLength<1> & tags.MaxLength<80>
  description: string & tags.MinLength<1> & tags.MaxLength<2000>
  /** JSON Schema of its input, of type object. */
  input: { [keyword: string]: unknown }
  readOnly?: boolean
  unattended?: boolean
  timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1000> & tags.Maximum<600000>
}
