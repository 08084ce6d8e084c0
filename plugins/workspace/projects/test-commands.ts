import { keysAt, manifestValue, textAt } from '../repositories/manifests.js'
import { packageManagerOf, type ProjectFiles, type Words } from './managers.js'

/** What npm writes into a manifest that has no tests. */
const NO_TESTS = /no test specified/

/** A command that tests a folder, and the program it needs; a path is one of the folder. */
export interface FoundTests {
  readonly program: string
  readonly words: Words
}

/** Whether a folder has tests of pytest: a setting of it, or files that it collects. */
const usesPytest = async (files: ProjectFiles, names: readonly string[]): Promise<boolean> =>
  ['pytest.ini', 'conftest.py'].some(name => files.has(name))
  || names.some(name => name === 'tests' || /^test_.*\.py$|_test\.py$/.test(name))
  || keysAt(await manifestValue('pyproject.toml', await files.text('pyproject.toml')), 'tool').includes('pytest')

const PYTEST: { readonly [manager: string]: readonly string[] } = {
  uv: ['uv', 'run', 'pytest'],
  poetry: ['poetry', 'run', 'pytest'],
  pdm: ['pdm', 'run', 'pytest'],
  pipenv: ['pipenv', 'run', 'pytest'],
}

/** The command that tests a folder: its manifest's own; undefined when none is known. `names` are all it holds. */
export const testsOf = async (files: ProjectFiles, names: readonly string[]): Promise<FoundTests | undefined> => {
  const manifest = await manifestValue('package.json', await files.text('package.json'))
  const script = textAt(manifest, 'scripts', 'test')
  if (script !== undefined && !NO_TESTS.test(script)) {
    const manager = (await packageManagerOf(files, 'node'))!.manager
    return { program: manager, words: [manager, 'run', 'test'] }
  }
  if (await usesPytest(files, names)) {
    const manager = (await packageManagerOf(files, 'python'))?.manager ?? 'pip'
    const words = PYTEST[manager] ?? [names.includes('.venv') ? '.venv/bin/python' : 'python3', '-m', 'pytest']
    return { program: words[0]!, words }
  }
  if (files.has('Cargo.toml')) return { program: 'cargo', words: ['cargo', 'test'] }
  if (files.has('go.mod')) return { program: 'go', words: ['go', 'test', './...'] }
  if (files.has('Gemfile'))
    return { program: 'bundle', words: ['bundle', 'exec', ...(names.includes('spec') ? ['rspec'] : ['rake', 'test'])] }
  if (files.has('phpunit.xml') || files.has('phpunit.xml.dist'))
    return { program: 'vendor/bin/phpunit', words: ['vendor/bin/phpunit'] }
  if (files.has('pom.xml'))
    return files.has('mvnw')
      ? { program: 'java', words: ['sh', './mvnw', '-B', 'test'] }
      : { program: 'mvn', words: ['mvn', '-B', 'test'] }
  if (files.has('build.gradle') || files.has('build.gradle.kts'))
    return files.has('gradlew')
      ? { program: 'java', words: ['sh', './gradlew', '--no-daemon', 'test'] }
      : { program: 'gradle', words: ['gradle', '--no-daemon', 'test'] }
  return undefined
}
