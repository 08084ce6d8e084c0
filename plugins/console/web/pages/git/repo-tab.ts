/** What each part of a repository's page gets. */
export interface RepoTabProps {
  readonly repo: string
  /** The parts of the address behind the name of the tab. */
  readonly rest: readonly string[]
  readonly maintains: boolean
}
