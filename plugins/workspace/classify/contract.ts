import type { tags } from 'typia'

/** What something in the workspace is, and by which rule. */
export interface Classification {
  path: string
  bucket: 'repositories' | 'documents' | 'media' | 'archives' | 'other'
  /** Such as `magic:image/png`, `ext:.md`, `repository:package.json`, `text-content` or `unknown`. */
  reason: string
}
/** What lies loose in the workspace. */
export interface ClassifiedEntries {
  classifications: Classification[] & tags.MaxItems<20000>
}

/** Sorting what lies loose in the workspace. */
export interface ClassifyCalls {
  /**
   * Sort what lies in the workspace by fixed rules, at most 20,000 entries; nothing is moved.
   *
   * A folder with a project's manifest or a `.git` is one repository and is not entered. A file goes by its first
   * bytes, then by its extension, then by whether it reads as text.
   */
  'GET /workspace/classify'(): ClassifiedEntries
}
