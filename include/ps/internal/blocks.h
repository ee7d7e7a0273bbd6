/*
 * Memory for objects of one size that are made and freed by the million, many at a time: a freed block is kept
 * for the next object. (malloc caches only a few blocks of a size; with 64 requests in flight it takes a tenth
 * of a small request's time.) Never waits: while another thread holds the list, operator new and delete are
 * used. Any thread may put a block back. Tests: test/ps/unit_queue.cc.
 */
#ifndef PS_INTERNAL_BLOCKS_H_
#define PS_INTERNAL_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <new>

namespace ps
{
namespace internal
{
template <size_t BYTES> class Blocks
{
  public:
    static void *Get()
    {
        Free &free = Kept();
        Block *block = nullptr;
        if (!free.held.test_and_set(std::memory_order_acquire)) {
            block = free.first;
            if (block != nullptr) {
                free.first = block->next;
                free.count--;
            }
            free.held.clear(std::memory_order_release);
        }
        return block != nullptr ? block : ::operator new(sizeof(Block));
    }
    static void Put(void *memory)
    {
        const size_t most = 1024; /* arbitrary */
        Free &free = Kept();
        bool kept = false;
        if (!free.held.test_and_set(std::memory_order_acquire)) {
            if (free.count < most) {
                Block *block = static_cast<Block *>(memory);
                block->next = free.first;
                free.first = block;
                free.count++;
                kept = true;
            }
            free.held.clear(std::memory_order_release);
        }
        if (!kept)
            ::operator delete(memory);
    }

  private:
    union Block {
        Block *next;
        alignas(std::max_align_t) unsigned char bytes[BYTES];
    };
    struct Free {
        std::atomic_flag held;
        Block *first;
        size_t count;
    };
    /* Of the process, and never destroyed: threads may outlive main. */
    static Free &Kept()
    {
        static Free free = {ATOMIC_FLAG_INIT, nullptr, 0};
        return free;
    }
};
} // namespace internal
} // namespace ps
#endif
