import type { tags } from 'typia'

/** Where a plugin comes from, if that is not the repository of its list. */
export interface ListedSource {
  /** The kind of source, such as `github`, `url` or `git-subdir`. */
  source: string
  repo?: string
  url?: string
  path?: string
  ref?: string
  sha?: string
}
/** A plugin of a list. */
export interface ListedPlugin {
  name: string & tags.MinLength<1> & tags.MaxLength<200>
  /** A folder of the same repository, or a source elsewhere. */
  source: string | ListedSource
  description?: string
  version?: string
  category?: string
  homepage?: string
}
/** The file `.claude-plugin/marketplace.json`, in which repositories list plugins of agents. */
export interface PluginList {
  name: string & tags.MinLength<1> & tags.MaxLength<200>
  metadata?: {
    /** The folder that relative sources begin at. */
    pluginRoot?: string
  }
  plugins: ListedPlugin[] & tags.MaxItems<5000>
}
