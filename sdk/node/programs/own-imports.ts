import { registerHooks } from 'node:module'

/**
 * Lets the built program find its own modules without a search: they name each other by their files. Node would look
 * for a package around each and for links in its path, a seventh of the time a start takes.
 *
 * @param folder The address of the folder that the program lies in.
 */
export const findOwnImports = (folder: string): void => {
  registerHooks({
    resolve: (name, context, next) =>
      name.startsWith('.') && name.endsWith('.js') && context.parentURL?.startsWith(folder)
        ? { url: new URL(name, context.parentURL).href, format: 'module', shortCircuit: true }
        : next(name, context),
  })
}
