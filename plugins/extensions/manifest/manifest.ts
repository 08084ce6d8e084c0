/** A condition over context keys and form values: `==`, `!=`, `in [..]`, `&&`, `||`, `!`, parentheses. */
export type ExtensionCondition = string

/** The file `intentic-extension.json` in an extension's root. Every part is optional. */
export interface ExtensionManifest {
  $schema?: string
  /** Who publishes it; `local` when absent. */
  publisher?: string
  /** Its name; the folder's name when absent. */
  name?: string
  /** Semantic version, for display and identity only; `0.0.0` when absent. */
  version?: string
  category?: string
  /** A whole SVG document; always drawn inert. */
  art?: string
  logo?: string
  icon?: string
  /** The range of host API versions it runs on, under one key. */
  engines?: Record<string, string>
  /** A prebuilt single-file ES module for the browser that exports `activate()`. */
  entry?: string
  /** A prebuilt single-file ES module for Node that exports `activate(host)`. */
  server?: string
  permissions?: ExtensionPermissions
  contributes?: ExtensionContributions
}

/** What the halves of an extension may reach. */
export interface ExtensionPermissions {
  /** Routes that the browser half may call, and what the server half may reach of the machine. */
  sandbox?: string[]
  /** Routes that the server half and the processes may call. */
  daemon?: string[]
}

/** What an extension adds to the sandbox. */
export interface ExtensionContributions {
  views?: { id: string; label: string; surface: 'rail' | 'directory' | 'sandbox'; badge?: boolean }[]
  sideViews?: {
    id: string
    label: string
    beside: 'conversation' | 'file' | 'changes' | 'run'
    when?: ExtensionCondition
    badge?: boolean
  }[]
  files?: { path: string; invalidates: string[] }[]
  viewers?: { id: string; extensions: string[]; fetch: 'text' | 'blob' | 'url' }[]
  documents?: { id: string; label: string }[]
  commands?: { command: string; title: string; icon?: string; keybinding?: string; when?: ExtensionCondition }[]
  settings?: ExtensionSetting[]
  processes?: ExtensionProcess[]
  tools?: ExtensionTool[]
}

/** A setting that people fill in. */
export interface ExtensionSetting {
  key: string
  type: 'boolean' | 'string' | 'number' | 'enum'
  title: string
  description?: string
  default?: string | number | boolean
  enum?: string[]
  /** Kept in the vault; type string only. */
  secret?: boolean
  /** Put into the agent's shell under this name. */
  env?: string
}

/** A long-lived program that the daemon runs. */
export interface ExtensionProcess {
  name: string
  command: string
  cwd?: string
  port?: 'auto'
  preview?: boolean
  autoStart?: boolean
  restart?: 'never' | 'on-failure' | 'always'
  secrets?: string[]
}

/** A tool of the agent, served by the backend. */
export interface ExtensionTool {
  name: string
  title: string
  description: string
  /** JSON Schema of its input, of type object. */
  input: object
  readOnly?: boolean
  unattended?: boolean
  timeoutMs?: number
}
