// Builds what a start needs, says what it waits for, and runs `sandbox serve --sample` with the arguments given.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const args = process.argv.slice(2)
const CLI = 'dist/bundle/sdk/cli.js'

/** The address a daemon would listen on; its own parser refuses what is wrong with the arguments. */
const address = () => {
  const options = { host: { type: 'string' }, port: { type: 'string' } }
  const { values } = parseArgs({ args, options, strict: false })
  return {
    host: String(values.host ?? process.env.SANDBOX_HOST ?? '127.0.0.1'),
    port: Number(values.port ?? process.env.SANDBOX_PORT ?? 8787),
  }
}

/** Ends at once where the daemon could not listen after the build. */
const assertFree = async ({ host, port }) => {
  if (!(Number.isInteger(port) && port >= 0 && port < 65_536)) return
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
  } catch (error) {
    if (error.code !== 'EADDRINUSE') return
    console.error(
      `sandbox: port ${port} of ${host} is in use by another program: stop it, or choose another with --port`,
    )
    process.exit(1)
  } finally {
    server.close()
  }
}

/** Says that an old Node which runs npm does no harm: scripts use the one that the project's packages brought. */
const noteOldNode = () => {
  const [, version] = /\bnode\/v([\d.]+)/.exec(process.env.npm_config_user_agent ?? '') ?? []
  if (version && Number.parseInt(version) < Number.parseInt(process.versions.node))
    console.log(
      `npm runs on Node ${version}; the program runs on Node ${process.versions.node}, which npm ci installed`,
    )
}

noteOldNode()
await assertFree(address())
const since = performance.now()
let said = false
const { buildProgram } = await import('./build.mjs')
await buildProgram(what => {
  if (!said) console.log('building the program; the first time takes about 20 s')
  said = true
  console.log(`  ${what}`)
})
if (said) console.log(`built in ${((performance.now() - since) / 1000).toFixed(0)} s\n`)

process.argv.splice(1, process.argv.length, resolve(CLI), 'serve', '--sample', ...args)
await import(pathToFileURL(resolve(CLI)).href)
