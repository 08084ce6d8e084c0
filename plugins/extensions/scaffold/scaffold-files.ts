import { MANIFEST_FILE } from '../manifest/parse.js'

/** The files of a new extension: a page, a backend with one route, its test, and its manifest. */
export const scaffoldFiles = (publisher: string, name: string): { readonly [file: string]: string } => {
  const id = `${publisher}.${name}`
  const label = name.replaceAll('-', ' ').replace(/^./, first => first.toUpperCase())
  const manifest = {
    publisher,
    name,
    version: '0.1.0',
    engines: { sandbox: '^1.0' },
    entry: 'page.ts',
    server: 'server.ts',
    contributes: { views: [{ id: 'main', label, surface: 'sandbox' }] },
  }
  return {
    [MANIFEST_FILE]: jsonText(manifest),
    'page.ts': `import type { UiHost } from 'sandbox-daemon/sdk'

/** Runs in a frame of its own in the console. */
export const activate = async (host: UiHost): Promise<void> => {
  const heading = document.createElement('h1')
  const answer = document.createElement('p')
  heading.textContent = ${JSON.stringify(label)}
  document.body.append(heading, answer)
  const { text } = (await host.fetch('/hello')) as { text: string }
  answer.textContent = text
}
`,
    'server.ts': `import type { ExtensionHost } from 'sandbox-daemon/sdk'

/** Runs in a process of its own behind a wall: everything goes through the host. */
export const activate = (host: ExtensionHost): void => {
  host.routes.handle('GET /hello', {}, () => ({ body: { text: 'Hello from ${id}' } }))
}
`,
    'server.test.ts': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostFor } from 'sandbox-daemon/sdk/testing'
import manifest from './${MANIFEST_FILE}' with { type: 'json' }
import * as server from './server.ts'

test('the route says hello', async t => {
  const tested = hostFor(t, manifest)
  await tested.activate(server)
  assert.deepEqual(await tested.request('GET /hello'), { status: 200, body: { text: 'Hello from ${id}' } })
})
`,
    'package.json': jsonText({
      name: `${publisher}-${name}`,
      private: true,
      type: 'module',
      scripts: { check: 'tsc', test: 'node --test' },
      devDependencies: { '@types/node': '^24.0.0', typescript: '^5.9.0' },
    }),
    'tsconfig.json': jsonText({
      compilerOptions: {
        target: 'es2024',
        lib: ['es2024', 'dom', 'dom.iterable'],
        module: 'nodenext',
        types: ['node'],
        strict: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        erasableSyntaxOnly: true,
        resolveJsonModule: true,
        verbatimModuleSyntax: true,
      },
    }),
    '.gitignore': 'node_modules/\n',
    'README.md': `# ${label}

An extension of this sandbox. \`${MANIFEST_FILE}\` says what it is and what it may do, \`page.ts\` is its page in the
console, and \`server.ts\` its backend, whose route answers at \`/x/${id}/hello\`.

There is no build step: the sandbox runs TypeScript whose types can be erased. Save a file, and the backend starts
again. What the manifest asks for beyond what a maintainer approved waits for the next approval, on the page Extensions
of the console or with \`sandbox extension approve\`.

To check the types and run the test, install the sandbox's types beside what \`package.json\` names:

\`\`\`sh
npm install --no-save "$(npm root --global)/sandbox-daemon"
npm run check
npm test
\`\`\`
`,
  }
}

const jsonText = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`
