// After an install: one sentence where npm itself runs on a Node that is too old.
import { readFileSync } from 'node:fs'

const least = Number.parseInt(JSON.parse(readFileSync('package.json', 'utf8')).engines.node.replace('>=', ''))
const [, version] = /\bnode\/v([\d.]+)/.exec(process.env.npm_config_user_agent ?? '') ?? []
if (version && Number.parseInt(version) < least)
  console.log(
    `npm runs on Node ${version}; its scripts here run on Node ${process.versions.node}, which came with them`,
  )
