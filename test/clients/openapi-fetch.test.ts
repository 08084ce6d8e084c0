import { copyFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import { checkLanded, daemonFor, runProgram, typeFaults } from './client-turn.js'

t.test(
  'a client of openapi-fetch, with the types made of the document, does a turn with a card and lands it',
  async t => {
    const daemon = await daemonFor(t)
    const program = join(daemon.folder, 'openapi-fetch-turn.ts')
    copyFileSync('test/fixtures/clients/openapi-fetch-turn.ts', program)
    const types = await openapiTS(pathToFileURL(resolve('openapi/openapi.json')))
    writeFileSync(join(daemon.folder, 'schema.d.ts'), astToString(types))
    t.same(typeFaults(program), [], 'every event of the stream has a type')
    t.same(await runProgram(program, daemon), { reason: 'completed', landed: true })
    await checkLanded(t, daemon)
  },
)
