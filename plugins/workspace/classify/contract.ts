import type { tags } from 'typia'

/** The kind of a file or folder, and the rule that decided. */
export interface Classification {
  path: string
  bucket: 'repositories' | 'documents' | 'media' | 'archives' | 'other'
  /** Such as `magic:image/png`, `ext:.md`, `repository:package.json`, `text-content` or `unknown`. */
  reason: string
}
/** The loose files and folders of the workspace. */
export interface ClassifiedEntries {
  classifications: Classification[] & tags.MaxItems<20000>
}

/** The classification of loose files. */
export interface ClassifyCalls {
  /**
   * Classify the files of the workspace by fixed rules, at most 20,000 entries; nothing is moved.
   *
   * A folder with a project's manifest or a `.git` is one repository and is not entered. A file goes by its first
   * bytes, then by its extension, then by whether it reads as text.
   */
  'GET /workspace/classify'(): ClassifiedEntries
}
