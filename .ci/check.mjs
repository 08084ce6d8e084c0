// Checks the types of everything: `npm run check`. The build takes them out unread.
import { mkdirSync } from 'node:fs'
import { node } from './node.mjs'
import { alsoRead, sources, step } from './sources.mjs'

const check = (project, name) =>
  node(
    ...['node_modules/typescript/bin/tsc', '-p', project, '--noEmit', '--incremental'],
    ...['--tsBuildInfoFile', `dist/.stamps/${name}.tsbuildinfo`],
  )

await step('checked', [...sources(), ...alsoRead()], async () => {
  mkdirSync('dist/.stamps', { recursive: true })
  const ended = await Promise.allSettled([check('tsconfig.json', 'check'), check('plugins/console/web', 'check-web')])
  const failed = ended.filter(({ status }) => status === 'rejected')
  for (const { reason } of failed) console.error(reason.message)
  if (failed.length) process.exit(1)
})
