/** The guides of the groups, which the build collects. */
declare module 'guides:all' {
  export const GUIDES: readonly {
    readonly group: string
    readonly title: string
    readonly load: () => Promise<string>
  }[]
}
