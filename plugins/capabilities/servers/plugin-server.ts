/** Whether the id of a server is that of one of a plugin: no connection has a point in its id. */
export const isPluginServer = (id: string): boolean => id.includes('.')
