/** The guides that the build collects: of the groups, of who runs the sandbox, of who writes for it. */
declare module 'guides:all' {
  export const GUIDES: readonly {
    /** Its name in addresses: the group, or the folder. */
    readonly name: string
    readonly file: string
    readonly title: string
    readonly load: () => Promise<string>
  }[]
}
