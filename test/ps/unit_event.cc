// event.h: what is set ends a wait, before it or during it; what never comes is named.
#include <thread>

#include "event.h"
#include "expect.h"

static void TestSet()
{
    Event event("what another thread does");
    std::thread other([&event] { event.Set(); });
    event.Wait();
    event.Wait();
    other.join();
}

static void TestNever()
{
    Event event("a letter", std::chrono::seconds(0));
    std::string why;
    try {
        event.Wait();
    } catch (const std::runtime_error &e) {
        why = e.what();
    }
    EXPECT(why == "nothing came in 0 s of what was waited for: a letter");
    event.Set();
    event.Wait();
}

int main()
{
    TestSet();
    TestNever();
    return Failures("unit_event");
}
