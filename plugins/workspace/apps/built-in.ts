import type { AppTemplate } from './contract.js'

/** A template with its files, by their path. */
export interface BuiltInTemplate extends AppTemplate {
  readonly files: { readonly [path: string]: string }
}

const manifest = (fields: object): string =>
  `${JSON.stringify({ private: true, type: 'module', ...fields }, undefined, 2)}\n`

const SERVER = `import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'

export const answer = path => ({ path, time: new Date().toISOString() })

const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(answer(request.url)))
})

if (process.argv[1] === fileURLToPath(import.meta.url)) server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
`

const SERVER_TEST = `import assert from 'node:assert/strict'
import test from 'node:test'
import { answer } from './server.js'

test('an answer names the path', () => {
  assert.equal(answer('/a').path, '/a')
})
`

const FILES_SERVER = `import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'

const root = new URL('public/', import.meta.url)
const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.svg': 'image/svg+xml' }

createServer(async (request, response) => {
  const asked = new URL('.' + new URL(request.url, 'http://localhost').pathname, root)
  const file = asked.href.endsWith('/') ? new URL('index.html', asked) : asked
  try {
    if (!file.href.startsWith(root.href)) throw new Error('outside')
    const bytes = await readFile(file)
    response.setHeader('content-type', types[extname(file.pathname)] ?? 'application/octet-stream')
    response.end(bytes)
  } catch {
    response.statusCode = 404
    response.end('not found')
  }
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
`

const page = (head: string, body: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Hello</title>
${head}  </head>
  <body>
${body}  </body>
</html>
`

const MAIN = `const main = document.querySelector<HTMLElement>('#app')
if (main) main.textContent = 'Hello'
`

const TSCONFIG = `${JSON.stringify(
  {
    compilerOptions: {
      target: 'ES2022',
      module: 'ESNext',
      moduleResolution: 'bundler',
      lib: ['ES2022', 'DOM'],
      types: ['vite/client'],
      strict: true,
      noEmit: true,
    },
    include: ['src'],
  },
  undefined,
  2,
)}\n`

/** The templates that need no source. */
export const BUILT_IN: readonly BuiltInTemplate[] = [
  {
    key: 'node-server',
    label: 'Node server',
    description: 'An HTTP server in JavaScript without dependencies, with a test.',
    kind: 'app',
    files: {
      'package.json': manifest({
        scripts: { dev: 'node --watch server.js', start: 'node server.js', test: 'node --test' },
      }),
      'server.js': SERVER,
      'server.test.js': SERVER_TEST,
      '.gitignore': 'node_modules/\n',
    },
  },
  {
    key: 'static-site',
    label: 'Static site',
    description: 'HTML and CSS with a small server, without dependencies.',
    kind: 'app',
    files: {
      'package.json': manifest({ scripts: { dev: 'node serve.js' } }),
      'serve.js': FILES_SERVER,
      'public/index.html': page('    <link rel="stylesheet" href="style.css" />\n', '    <h1>Hello</h1>\n'),
      'public/style.css': 'body {\n  font-family: system-ui, sans-serif;\n}\n',
    },
  },
  {
    key: 'vite',
    label: 'Vite and TypeScript',
    description: 'A page in TypeScript with a development server that reloads it.',
    kind: 'app',
    files: {
      'package.json': manifest({
        scripts: { dev: 'vite --host 127.0.0.1 --port ${PORT:-5173}', build: 'tsc && vite build' },
        devDependencies: { typescript: '^5.9.0', vite: '^7.0.0' },
      }),
      'index.html': page('', '    <main id="app"></main>\n    <script type="module" src="/src/main.ts"></script>\n'),
      'src/main.ts': MAIN,
      'tsconfig.json': TSCONFIG,
      '.gitignore': 'node_modules/\ndist/\n',
    },
  },
]
