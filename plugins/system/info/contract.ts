/** One thing in a file that the sandbox could not honour. */
export interface ManifestProblem {
  /** The whole file, a key nobody knows, an entry that does not fit, or one that came with the code and nobody accepted. */
  kind: 'unreadable' | 'unknownKey' | 'invalidEntry' | 'unaccepted'
  detail: string
  /** The nearest name that is known. */
  suggestion?: string
}
/** A file that people edit by hand, with what is wrong in it. */
export interface ManifestProblemReport {
  /** From the workspace root, such as `.sandbox/config/settings.json`. */
  path: string
  problems: ManifestProblem[]
}

/** What is wrong in files that people edit by hand. */
export interface ManifestProblemCalls {
  /**
   * List what the sandbox cannot honour in the files that people edit by hand.
   *
   * The files are read again for it. Those without problems are not listed.
   */
  'GET /system/manifest-problems'(): ManifestProblemReport[]
}
