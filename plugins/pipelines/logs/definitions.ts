import { parse } from 'yaml'
import { givenObject, type GivenJson } from '../forges/given.js'

const MOST_JOBS = 500

/** What a pipeline's definition says of each job that it waits for; by the name that runs show. */
export type DeclaredNeeds = ReadonlyMap<string, readonly string[]>

const names = (value: unknown): string[] => {
  const list = Array.isArray(value) ? value : value === undefined ? [] : [value]
  return list.flatMap(each => {
    const name: unknown = typeof each === 'string' ? each : givenObject(each).job
    return typeof name === 'string' ? [name] : []
  })
}

/** A file of a workflow: jobs have keys, and runs show their names. */
const ofWorkflow = (file: GivenJson): [string, string[]][] => {
  const jobs = Object.entries(givenObject(file.jobs)).slice(0, MOST_JOBS)
  const shown = new Map(
    jobs.map(([key, job]) => {
      const { name } = givenObject(job)
      return [key, typeof name === 'string' ? name : key]
    }),
  )
  return jobs.map(([key, job]) => [shown.get(key)!, names(givenObject(job).needs).map(need => shown.get(need) ?? need)])
}

/** A file of GitLab: everything with a script is a job, which without `needs` waits for the stage before. */
const ofGitlab = (file: GivenJson): [string, string[]][] =>
  Object.entries(file)
    .slice(0, MOST_JOBS)
    .flatMap(([name, job]): [string, string[]][] => {
      const { script, needs } = givenObject(job)
      return script === undefined || needs === undefined ? [] : [[name, names(needs)]]
    })

/** Reads which jobs wait for which from the text of a definition; empty where it cannot be read. */
export const declaredNeeds = (text: string, isGitlab: boolean): DeclaredNeeds => {
  let file: GivenJson
  try {
    file = givenObject(parse(text, { maxAliasCount: 100, logLevel: 'silent' }))
  } catch {
    return new Map()
  }
  return new Map(isGitlab ? ofGitlab(file) : ofWorkflow(file))
}
