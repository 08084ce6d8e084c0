import { isUtf8 } from 'node:buffer'
import { extname } from 'node:path'
import { accessTo, leads, type Handlers, type Host } from '../../../sdk/index.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { openFile, openPath, type PathTree } from '../../../sdk/node/files/open-path.js'
import { isTemporary } from '../../../sdk/node/files/files.js'
import { IgnoreRules, isIgnored, pathIn } from '../tree/ignore-rules.js'
import { namesOfFolder } from '../tree/sweep.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { Classification, ClassifyCalls } from './contract.js'

const MOST = 20_000
const LOOKED_AT = 4_100
/** The signs of a repository, the strongest first. */
const MANIFESTS = [
  '.git',
  'package.json',
  'pyproject.toml',
  'setup.py',
  'requirements.txt',
  'Cargo.toml',
  'go.mod',
  'Gemfile',
  'composer.json',
  'pom.xml',
  'build.gradle',
  'build.gradle.kts',
  'deno.json',
  'CMakeLists.txt',
  'Makefile',
]
const DOCUMENTS =
  /^(?:application\/(?:pdf|rtf|msword|epub\+zip|vnd\.(?:openxmlformats|oasis\.opendocument|ms-).*|x-cfb))$/
const ARCHIVES =
  /^application\/(?:zip|gzip|x-(?:tar|bzip2|xz|7z-compressed|rar-compressed|compress|lzip|cpio)|zstd|vnd\.rar)$/
const EXTENSIONS: { readonly [bucket in Classification['bucket']]?: RegExp } = {
  documents: /^\.(?:pdf|docx?|xlsx?|pptx?|od[tsp]|rtf|epub|md|txt|csv|tsv|html?|eml|ipynb|tex|srt|vtt)$/,
  media: /^\.(?:png|jpe?g|gif|webp|svg|avif|heic|bmp|tiff?|mp[34]|m4[av]|mov|mkv|webm|ogg|flac|wav|avi)$/,
  archives: /^\.(?:zip|tar|gz|tgz|bz2|xz|zst|7z|rar)$/,
}

const bucketOfType = (mime: string): Classification['bucket'] => {
  if (/^(?:image|audio|video)\//.test(mime)) return 'media'
  if (DOCUMENTS.test(mime)) return 'documents'
  return ARCHIVES.test(mime) ? 'archives' : 'other'
}

/** The bytes are cut, possibly within a character. */
const readsAsText = (bytes: Buffer): boolean =>
  !bytes.includes(0) && [0, 1, 2, 3].some(cut => isUtf8(bytes.subarray(0, bytes.length - cut)))

const classified = async (tree: PathTree, path: string): Promise<Classification | undefined> => {
  await using found = await openPath(tree, path).catch(() => undefined)
  if (!found?.stats.isFile()) return undefined
  await using handle = await openFile(found, path).catch(() => undefined)
  const { bytesRead, buffer } = (await handle?.read(Buffer.alloc(LOOKED_AT), 0, LOOKED_AT, 0)) ?? {}
  const bytes = buffer?.subarray(0, bytesRead) ?? Buffer.alloc(0)
  const { fileTypeFromBuffer } = await import('file-type')
  const type = await fileTypeFromBuffer(bytes).catch(() => undefined)
  if (type) return { path, bucket: bucketOfType(type.mime), reason: `magic:${type.mime}` }
  const extension = extname(path).toLowerCase()
  for (const bucket of ['documents', 'media', 'archives'] as const)
    if (EXTENSIONS[bucket]!.test(extension)) return { path, bucket, reason: `ext:${extension}` }
  if (handle && bytes.length > 0 && readsAsText(bytes)) return { path, bucket: 'documents', reason: 'text-content' }
  return { path, bucket: 'other', reason: 'unknown' }
}

/** The contents of a tree, with each repository as one entry. */
const classify = async (tree: PathTree, signal: AbortSignal): Promise<Classification[]> => {
  const rules = new IgnoreRules(tree.root)
  const found: Classification[] = []
  const waiting = ['.']
  for (let folder = waiting.shift(); folder !== undefined && found.length < MOST; folder = waiting.shift()) {
    signal.throwIfAborted()
    const names = namesOfFolder(tree.root, folder)
    const own = new Set(names.map(({ name }) => name.toString()))
    const manifest = folder === '.' ? undefined : MANIFESTS.find(name => own.has(name))
    if (manifest !== undefined && accessTo(tree.reach, folder) !== undefined) {
      found.push({ path: folder, bucket: 'repositories', reason: `repository:${manifest}` })
      continue
    }
    const scope = rules.in(folder)
    for (const entry of names) {
      const path = pathIn(folder, entry.name.toString())
      if (!isUtf8(entry.name) || closedAs(path.split('/')) !== undefined || isTemporary(entry.name.toString())) continue
      if (!leads(tree.reach, path) || isIgnored(scope, path, entry.isDirectory())) continue
      if (entry.isDirectory()) waiting.push(path)
      const one = entry.isFile() && found.length < MOST ? await classified(tree, path) : undefined
      if (one) found.push(one)
    }
  }
  return found.sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Serves the classification of loose files. */
export const classifyCalls = (host: Host): Handlers<ClassifyCalls> => ({
  'GET /workspace/classify': async (_, context) => ({
    classifications: await classify(await sharedTree(host, context), context.signal),
  }),
})
