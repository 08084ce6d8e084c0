import { MANIFEST_FILE } from '../manifest/parse.js'

/** The files of a new extension: a page, a backend with one route, and the manifest. */
export const scaffoldFiles = (publisher: string, name: string): { readonly [file: string]: string } => {
  const id = `${publisher}.${name}`
  const label = name.replaceAll('-', ' ').replace(/^./, first => first.toUpperCase())
  const manifest = {
    publisher,
    name,
    version: '0.1.0',
    engines: { sandbox: '^1.0' },
    entry: 'page.js',
    server: 'server.js',
    contributes: { views: [{ id: 'main', label, surface: 'sandbox' }] },
  }
  return {
    [MANIFEST_FILE]: `${JSON.stringify(manifest, undefined, 2)}\n`,
    'page.js': `// Runs in a frame of its own in the console.
export const activate = async host => {
  const heading = document.createElement('h1')
  const answer = document.createElement('p')
  heading.textContent = ${JSON.stringify(label)}
  document.body.append(heading, answer)
  const { text } = await host.fetch('/hello')
  answer.textContent = text
}
`,
    'server.js': `// Runs in a process of its own behind a wall: everything goes through the host.
export const activate = host => {
  host.routes.handle('GET /hello', {}, () => ({ body: { text: 'Hello from ${id}' } }))
}
`,
    'README.md': `# ${label}

An extension of this sandbox. \`${MANIFEST_FILE}\` says what it is and what it may do, \`page.js\` is its page in the
console, and \`server.js\` its backend, whose route answers at \`/x/${id}/hello\`.

There is no build step: save a file, and the backend starts again. What the manifest asks for beyond what a maintainer
approved waits for the next approval (\`GET /extensions\`, \`POST /extensions/${id}/approve\`).
`,
  }
}
