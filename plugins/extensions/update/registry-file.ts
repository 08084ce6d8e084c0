import type { tags } from 'typia'

/** The source of a listed extension. */
export interface RegistrySource {
  url: string & tags.MinLength<1> & tags.MaxLength<2000>
  /** A full commit id; others are shown but cannot be installed. */
  ref: string & tags.MaxLength<200>
  path?: string & tags.MaxLength<400>
}

/** One extension of an index. */
export interface RegistryEntry {
  id: string & tags.MaxLength<121>
  /** `extension` when absent. */
  kind?: 'extension' | 'plugin'
  version?: string & tags.MaxLength<100>
  description?: string
  category?: string
  art?: string
  logo?: string
  icon?: string
  homepage?: string
  source: RegistrySource
  /** `listed` when absent. */
  trust?: 'verified' | 'listed' | 'blocked'
  trustReason?: string & tags.MaxLength<2000>
  securityFix?: boolean
  engines?: string & tags.MaxLength<100>
  publishedAt?: string & tags.MaxLength<40>
}

/** A warning about versions of an extension. */
export interface RegistryAdvisory {
  id: string & tags.MaxLength<121>
  refs: string[] | 'all'
  versions?: string & tags.MaxLength<100>
  reason: string & tags.MinLength<1> & tags.MaxLength<2000>
  at: string & tags.MaxLength<40>
}

/** The file `registry.json`, an index of extensions. */
export interface ExtensionRegistry {
  name: string & tags.MaxLength<100>
  extensions: RegistryEntry[] & tags.MaxItems<5000>
  advisories?: RegistryAdvisory[] & tags.MaxItems<5000>
}
