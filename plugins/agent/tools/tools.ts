import { ask, plan } from './asking.js'
import { browse } from './browser.js'
import { appendFile, deleteFile, editFile, moveFile, writeFile } from './changing.js'
import { code } from './commands/code.js'
import { offerToConnect } from './connect.js'
import { fetchPage } from './fetch.js'
import { delegate, join } from './delegate.js'
import { handOver } from './handover.js'
import { listFolder, readFile } from './reading.js'
import { propose, raiseNeed, withdrawNeed } from './need.js'
import { pay } from './pay.js'
import { search } from './search.js'
import { skill } from './skill.js'
import { processTool } from './commands/process.js'
import { shell } from './commands/shell.js'
import { todo } from './todo.js'
import type { Tool } from './tool.js'

/** The sandbox's tools by name, as a model calls them. */
export const tools: { readonly [name: string]: Tool } = {
  Read: readFile,
  List: listFolder,
  Search: search,
  Write: writeFile,
  Append: appendFile,
  Edit: editFile,
  Delete: deleteFile,
  Move: moveFile,
  Shell: shell,
  Process: processTool,
  Code: code,
  Fetch: fetchPage,
  Browser: browse,
  Todo: todo,
  Ask: ask,
  Plan: plan,
  Delegate: delegate,
  Join: join,
  Skill: skill,
  Need: raiseNeed,
  Withdraw: withdrawNeed,
  Handover: handOver,
  Propose: propose,
  Connect: offerToConnect,
  Pay: pay,
}
