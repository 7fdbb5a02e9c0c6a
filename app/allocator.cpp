// The allocator is jemalloc: rows, bodies and answers are allocated in one thread and freed in another all
// the time, which cost the C library's allocator a seventh of the node's CPU time more.

// Read by jemalloc when the process starts. Few arenas and a quick return of what is free keep the resident
// memory close to what is in use.
extern "C" const char* malloc_conf;
const char* malloc_conf = "narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0,background_thread:true";
