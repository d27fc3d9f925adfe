/** The saboteur's server as it is compiled, file by file. */
import { start } from './saboteur-main.ts';

await start(process.argv.slice(2));
