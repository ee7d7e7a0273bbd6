// Sanitizers: address; it has one thread.
#include "ps/sarray.h"

#include "expect.h"
#include "ps/base.h"

using namespace ps;

static void Constructors()
{
    SArray<int> none;
    EXPECT(none.empty() && none.size() == 0 && none.data() == nullptr && none.begin() == none.end());

    SArray<float> zeros(4), ones(3, 1.0f);
    EXPECT(zeros.size() == 4 && zeros[3] == 0.0f);
    EXPECT(ones.size() == 3 && ones.front() == 1.0f && ones.back() == 1.0f);

    SArray<int> listed{1, 3, 5, 7, 9};
    EXPECT(listed.size() == 5 && listed[2] == 5);
    SArray<double> mixed = {1, 2, 3};
    EXPECT(mixed.size() == 3 && mixed[1] == 2.0);
    listed = {4, 2};
    EXPECT(listed.size() == 2 && listed[1] == 2);

    std::vector<int> vec = {1, 2, 3};
    SArray<int> copied(vec);
    vec[0] = 9;
    EXPECT(copied[0] == 1);

    auto shared = std::make_shared<std::vector<int>>(10, 2);
    SArray<int> same(shared);
    (*shared)[1] = 7;
    EXPECT(same.size() == 10 && same[1] == 7 && shared.use_count() == 2);

    int plain[3] = {1, 2, 3};
    SArray<int> view(plain, 3);
    view[1] = 5;
    EXPECT(plain[1] == 5);
    SArray<int> owned(new int[2]{1, 2}, 2, true);
    EXPECT(owned[1] == 2);

    struct Pair {
        int a;
        float b;
    };
    SArray<Pair> pairs(2);
    pairs.push_back(Pair{1, 2});
    EXPECT(pairs.size() == 3 && pairs[2].a == 1 && pairs[0].b == 0);
}

static void Sharing()
{
    int freed = 0;
    {
        SArray<int> a;
        a.reset(new int[6]{0, 1, 2, 3, 4, 5}, 6, [&freed](int *p) {
            freed++;
            delete[] p;
        });
        SArray<int> b = a, c;
        c = a;
        SArray<int> part = a.segment(2, 5);
        SArray<char> bytes(a);
        EXPECT(bytes.size() == 6 * sizeof(int));
        SArray<int> back(bytes);
        a.clear();
        EXPECT(a.empty() && freed == 0);
        b[3] = 30;
        EXPECT(c[3] == 30 && part[1] == 30 && back[3] == 30 && part.size() == 3);
        EXPECT(part.segment(1, 1).empty());
        EXPECT_THROW(part.segment(2, 4));
        EXPECT_THROW(part.segment(2, 1));
    }
    EXPECT(freed == 1);
    SArray<char> odd(7);
    EXPECT_THROW(SArray<int>{odd});
    EXPECT_THROW(SArray<int>().back());
    SArray<float> floats(3);
    EXPECT(floats.sole());
    SArray<float> second = floats;
    EXPECT(!floats.sole());
    float outside[2];
    EXPECT(!SArray<float>(outside, 2).sole());
}

static void Growing()
{
    SArray<int> a;
    for (int i = 0; i < 100; i++)
        a.push_back(i);
    bool right = a.size() == 100;
    for (int i = 0; i < 100; i++)
        right = right && a[static_cast<size_t>(i)] == i;
    EXPECT(right);
    a.pop_back();
    a.resize(101, 5);
    EXPECT(a[98] == 98 && a[99] == 5 && a[100] == 5);
    SArray<int> before = a;
    a.resize(50);
    EXPECT(a.size() == 50 && a.capacity() >= 101 && before.size() == 101);
    a.append(a);
    EXPECT(a.size() == 100 && a[50] == 0 && a[99] == 49);
    SArray<int> b;
    b.CopyFrom(a);
    b[0] = -1;
    EXPECT(a[0] == 0 && b.size() == 100);
    b.CopyFrom(a.data() + 10, 3);
    EXPECT(b.size() == 3 && b[0] == 10);
    std::vector<short> shorts = {3, 1};
    b.CopyFrom(shorts.begin(), shorts.end());
    EXPECT(b.size() == 2 && b[0] == 3);
    a.reserve(1000);
    EXPECT(a.size() == 100 && a.capacity() >= 1000 && a[99] == 49);
    int sum = 0;
    for (int v : a)
        sum += v;
    EXPECT(sum == 2 * 1225);
}

static void Finding()
{
    SArray<int> a{1, 3, 5, 7, 9};
    EXPECT(FindRange(a, 2, 7) == Range(1, 3));
    EXPECT(FindRange(a, 7, 7) == Range(0, 0));
    EXPECT(FindRange(a, 10, 12) == Range(5, 5));
    SArray<Key> keys{Key(1), kMaxKey - 1};
    EXPECT(FindRange(keys, Key(0), kMaxKey) == Range(0, 2));
    std::ostringstream text;
    text << a;
    EXPECT(text.str() == "[5]: 1 3 5 7 9 ");
    EXPECT(DebugStr(SArray<int>(20, 1).data(), 20, 1) == "[20]: 1 ... 1 ");
    EXPECT(kScheduler == 1 && kServerGroup == 2 && kWorkerGroup == 4);
    EXPECT(Range(3, 8).size() == 5 && Range().size() == 0);
}

int main()
{
    Constructors();
    Sharing();
    Growing();
    Finding();
    return Failures("SArray");
}
