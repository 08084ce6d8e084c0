import { buildFolders, bundleIn } from './bundle-scan.js'
import { uiIn } from './ui-scan.js'
import { TooManyFiles } from './walk-files.js'

/** What a scan prints. */
export type ScanAnswer = { readonly found: object } | { readonly missing: string } | { readonly failed: string }

const SCANS: { readonly [name: string]: readonly [scan: (root: string) => object | undefined, missing: string] } = {
  ui: [uiIn, 'no file of a component (.tsx, .jsx, .vue, .svelte) is in the repository'],
  bundle: [bundleIn, `no build is in the repository, and none is made for this: it is looked for in ${buildFolders}`],
}

const answerOf = (name: string): ScanAnswer => {
  const [scan, missing] = SCANS[name]!
  try {
    const found = scan(process.cwd())
    return found === undefined ? { missing } : { found }
  } catch (error) {
    if (error instanceof TooManyFiles) return { failed: error.message }
    throw error
  }
}

process.stdout.write(JSON.stringify(answerOf(process.argv[2] ?? '')))
